package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/fleet"
)

const (
	readTimeout = 5 * time.Second // of all announcements
	minPause    = 50 * time.Millisecond
	maxPause    = time.Second // between two attempts to read and watch
)

var (
	errNotRead  = errors.New("the instances have not been read yet")
	errReplaced = errors.New("the cluster was restored or replaced")
)

// mirror is a copy of all announcements, which follows a watch.
type mirror struct {
	prefix string

	mu        sync.Mutex // guards what follows
	instances map[string]fleet.Instance
	cluster   uint64
	revision  int64 // of etcd, up to which the copy is right
	ready     bool  // the copy is followed
	err       error // why it is not
	changed   chan struct{}
	renew     context.CancelCauseFunc // has all be read again
}

func newMirror(prefix string) *mirror {
	return &mirror{prefix: prefix, err: errNotRead, changed: make(chan struct{}), renew: func(error) {}}
}

// run reads and watches until the context ends.
func (m *mirror) run(ctx context.Context, client *clientv3.Client) {
	pause := minPause
	for ctx.Err() == nil {
		began := time.Now()
		err := m.follow(ctx, client)
		m.lost(err)
		if time.Since(began) > maxPause {
			pause = minPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(rand.N(pause)): //nolint:gosec // spreads load, guards no secret
		}
		pause = min(2*pause, maxPause)
	}
}

// follow reads all announcements and follows their changes until an error occurs.
func (m *mirror) follow(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	m.mu.Lock()
	m.renew = cancel
	m.mu.Unlock()

	if err := connects(ctx, client); err != nil {
		return err
	}
	reading, done := context.WithTimeout(ctx, readTimeout)
	defer done()
	found, err := client.Get(reading, m.prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	m.replace(found)
	for changes := range client.Watch(ctx, m.prefix, clientv3.WithPrefix(), clientv3.WithRev(found.Header.Revision+1)) {
		if err := changes.Err(); err != nil {
			return err
		}
		m.apply(&changes)
	}
	return context.Cause(ctx)
}

// connects returns why there is no connection, if there is none: other requests try until
// their context ends, and do not tell.
func connects(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	_, err := pb.NewWatchClient(client.ActiveConnection()).Watch(ctx)
	return rpctypes.Error(err)
}

// reason returns why the copy is not followed, nil if it is or that is not known.
func (m *mirror) reason() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready || errors.Is(m.err, errNotRead) || errors.Is(m.err, context.DeadlineExceeded) {
		return nil
	}
	return m.err
}

// replace takes the result of a read of all.
func (m *mirror) replace(found *clientv3.GetResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances = make(map[string]fleet.Instance, len(found.Kvs))
	for _, pair := range found.Kvs {
		m.put(pair)
	}
	m.cluster, m.revision, m.ready, m.err = found.Header.ClusterId, found.Header.Revision, true, nil
	m.notify()
}

// apply takes changes that the watch has brought.
func (m *mirror) apply(changes *clientv3.WatchResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range changes.Events {
		if event.Type == clientv3.EventTypeDelete {
			delete(m.instances, m.id(event.Kv))
		} else {
			m.put(event.Kv)
		}
		m.revision = max(m.revision, event.Kv.ModRevision)
	}
	m.notify()
}

// put takes an announcement. One that cannot be read is that of an instance of which nothing
// else is known.
func (m *mirror) put(pair *mvccpb.KeyValue) {
	_, instance, _ := decode(pair.Value, m.id(pair))
	m.instances[instance.ID] = instance
}

func (m *mirror) id(pair *mvccpb.KeyValue) string {
	return strings.TrimPrefix(string(pair.Key), m.prefix)
}

// lost notes that the copy is not followed any more.
func (m *mirror) lost(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready, m.err = false, err
	m.notify()
}

// notify wakes all who wait. The mutex is held.
func (m *mirror) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// position is a point in the history of a cluster.
type position struct {
	cluster  uint64
	revision int64
}

// position returns that of the copy; zero if there is none.
func (m *mirror) position() position {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		return position{}
	}
	return position{m.cluster, m.revision}
}

// check has all be read again if etcd is not at a later position than the copy was before:
// the cluster was restored or replaced.
func (m *mirror) check(before position, now *pb.ResponseHeader) (replaced bool) {
	if before == (position{}) || now.ClusterId == before.cluster && now.Revision >= before.revision {
		return false
	}
	m.reread(errReplaced)
	return true
}

// reread has all be read again.
func (m *mirror) reread(reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready, m.err = false, reason
	m.renew(reason)
}

// await returns the instances when the copy has reached a revision.
func (m *mirror) await(ctx context.Context, revision int64, withInstances bool) (fleet.Fleet, error) {
	for {
		m.mu.Lock()
		if m.ready && m.revision >= revision {
			defer m.mu.Unlock()
			return m.snapshot(withInstances), nil
		}
		changed, err := m.changed, m.err
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("the watch has not brought revision %d", revision)
			}
			return fleet.Fleet{}, err
		case <-changed:
		}
	}
}

// snapshot returns the instances. The mutex is held.
func (m *mirror) snapshot(withInstances bool) fleet.Fleet {
	known := fleet.Fleet{Count: len(m.instances)}
	if !withInstances {
		return known
	}
	for _, instance := range m.instances {
		instance.Limits = slices.Clone(instance.Limits)
		known.Instances = append(known.Instances, instance)
	}
	slices.SortFunc(known.Instances, func(a, b fleet.Instance) int { return strings.Compare(a.ID, b.ID) })
	return known
}
