package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/fleet"
)

// writeInterval is after what time an announcement is written again that has not changed. It
// shows that the watch works.
const writeInterval = 10 * time.Second

// writeAttempts is how often an announcement is tried to be written before the next one.
const writeAttempts = 3

// registration is what an instance has announced: a key under a lease. Whoever has locked it
// may use all of it.
type registration struct {
	key    string
	owner  string
	holder string          // the session of the instance that announces itself
	ended  context.Context // when the backend is closed
	locked chan struct{}

	lease     clientv3.LeaseID
	expired   chan struct{} // closed when the lease is not renewed any more
	endLease  context.CancelFunc
	unwatched *time.Timer // ends the lease when nothing is announced any more

	revision  int64 // of the key, 0 if it is not known to be there
	isNew     bool  // the key was not there, or others may be missing, and that was not returned yet
	written   fleet.Instance
	writtenAt time.Time
	behind    int // announcements that the watch has not brought in time, one after the other
}

func newRegistration(ended context.Context, key, owner string) *registration {
	return &registration{key: key, owner: owner, ended: ended, locked: make(chan struct{}, 1)}
}

func (r *registration) lock(ctx context.Context) error {
	select {
	case r.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *registration) unlock() { <-r.locked }

// announce makes sure that etcd answers and has the announcement.
func (r *registration) announce(ctx context.Context, client *clientv3.Client, copied *mirror, self *fleet.Instance) error {
	if r.holder != self.Session && r.lease != 0 && !r.hasExpired() {
		return ErrNameTaken
	}
	r.holder = self.Session
	if r.unwatched != nil && r.unwatched.Stop() {
		r.unwatched.Reset(fleet.AnnounceLife)
	}
	before := copied.position()
	if r.revision != 0 && !r.hasExpired() && !hasChanged(&r.written, self) && time.Since(r.writtenAt) < writeInterval {
		found, err := client.Get(ctx, r.key, clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if copied.check(before, found.Header) {
			r.isNew = true
		}
		if len(found.Kvs) == 1 && found.Kvs[0].ModRevision == r.revision {
			return nil
		}
	}
	for range writeAttempts {
		if err := r.obtainLease(ctx, client); err != nil {
			return fmt.Errorf("obtaining a lease: %w", err)
		}
		done, err := r.write(ctx, client, copied, self)
		if done || err != nil {
			return err
		}
	}
	return errors.New("the key is changed by somebody else")
}

// write writes the announcement if the key is as this instance has left it. So an earlier
// announcement that takes effect late never overwrites a later one.
func (r *registration) write(ctx context.Context, client *clientv3.Client, copied *mirror, self *fleet.Instance) (done bool, err error) {
	before := copied.position()
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(r.key), "=", r.revision)).
		Then(clientv3.OpPut(r.key, string(encode(r.owner, self)), clientv3.WithLease(r.lease))).
		Else(clientv3.OpGet(r.key)).
		Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		r.dropLease()
		return false, nil
	case err != nil:
		r.writtenAt = time.Time{} // it may take effect, unless another one is written before
		return false, err
	}
	if copied.check(before, answer.Header) {
		r.isNew = true
	}
	if answer.Succeeded {
		r.isNew = r.isNew || r.revision == 0
		r.revision, r.written, r.writtenAt = answer.Header.Revision, clone(self), time.Now()
		return true, nil
	}
	r.revision = 0
	for _, pair := range answer.Responses[0].GetResponseRange().Kvs {
		if owner, _, _ := decode(pair.Value, ""); owner != r.owner {
			return false, ErrNameTaken
		}
		r.revision = pair.ModRevision // of an announcement whose answer was lost
	}
	return false, nil
}

// obtainLease makes sure that there is a lease that is renewed.
func (r *registration) obtainLease(ctx context.Context, client *clientv3.Client) error {
	if r.lease != 0 && !r.hasExpired() {
		return nil
	}
	r.dropLease()
	granted, err := client.Grant(ctx, int64(fleet.AnnounceLife/time.Second))
	if err != nil {
		return err
	}
	lasting, end := context.WithCancel(r.ended)
	renewals, err := client.KeepAlive(lasting, granted.ID)
	if err != nil {
		end()
		return err
	}
	expired := make(chan struct{})
	go func() {
		defer close(expired)
		for range renewals {
			// It is closed when the lease has ended.
		}
	}()
	r.lease, r.expired, r.endLease = granted.ID, expired, end
	r.unwatched = time.AfterFunc(fleet.AnnounceLife, end)
	return nil
}

func (r *registration) hasExpired() bool {
	select {
	case <-r.expired:
		return true
	default:
		return false
	}
}

// dropLease ends that the lease is renewed, if there is one.
func (r *registration) dropLease() {
	if r.lease != 0 {
		r.unwatched.Stop()
		r.endLease()
		r.lease = 0
	}
}

// leave revokes the lease. If that fails, it expires.
func (r *registration) leave(ctx context.Context, client *clientv3.Client) error {
	lease := r.lease
	r.dropLease()
	if lease == 0 || client == nil {
		return nil
	}
	if _, err := client.Revoke(ctx, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	return nil
}

// noteAwaited notes whether the watch has brought what was written. It says whether it has
// been behind twice in a row.
func (r *registration) noteAwaited(err error) (again bool) {
	if err == nil {
		r.behind = 0
		return false
	}
	r.behind++
	return r.behind%2 == 0
}

// translate gives limits whose keys were shortened their keys back.
func (r *registration) translate(instances []fleet.Instance) {
	keys := make(map[string]string)
	for _, u := range r.written.Limits {
		if short := shorten(u.Key); short != u.Key {
			keys[short] = u.Key
		}
	}
	if len(keys) == 0 {
		return
	}
	for _, instance := range instances {
		for i := range instance.Limits {
			if key, ok := keys[instance.Limits[i].Key]; ok {
				instance.Limits[i].Key = key
			}
		}
	}
}

func clone(self *fleet.Instance) fleet.Instance {
	return fleet.Instance{ID: self.ID, Limits: append([]fleet.Use(nil), self.Limits...)}
}
