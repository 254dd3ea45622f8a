package redissource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// checkInterval is how often the client is asked whether the server has reported a
// change. That takes no request.
const checkInterval = 100 * time.Millisecond

// errGone says that the hash has disappeared.
var errGone = errors.New("redis: the key is gone, although nobody removed its documents: it was evicted or has expired, the server was " +
	"emptied, or it has lost its data; the rules stay until there are documents again")

// reader is the state of one call of [Source.Run]. Only its goroutine uses it.
type reader struct {
	*Source
	client   rueidis.Client // nil while there is no connection
	cancel   context.CancelFunc
	probe    string        // a field that no hash has
	changed  chan struct{} // has a value when the server has reported a change
	tracking bool          // the server tells the client of changes
	current  bool          // what was read last was delivered and changes from then on are reported to the client

	noCache    bool          // clients are made without client-side caching
	noRole     bool          // the server refuses to tell its role
	present    bool          // the hash was there when it was read last
	read       history       // as read last
	olderSince clock.Instant // when an older revision than read was found first; 0 if none is
}

// next implements [snapshot.Next].
func (r *reader) next(ctx context.Context) (snapshot.Snapshot, error) {
	if r.client == nil {
		if err := r.connect(ctx); err != nil {
			return snapshot.Snapshot{}, explain(fmt.Errorf("connecting: %w", err))
		}
	}
	if err := r.awaitChange(ctx); err != nil {
		r.disconnect()
		return snapshot.Snapshot{}, explain(err)
	}
	fields, err := r.readAll(ctx)
	if err != nil {
		r.disconnect()
		return snapshot.Snapshot{}, explain(fmt.Errorf("reading %s: %w", r.key, err))
	}
	state, err := r.snapshot(fields)
	r.current = err == nil
	return state, err
}

// awaitChange returns when the documents may differ from what was read last, or it is
// time to read them anyway.
//
// The client caches whether the hash has a field that nobody writes. The server tells of
// the next change of the hash after it was asked that, whatever the change is. So no
// change is missed after documents that are read later.
func (r *reader) awaitChange(ctx context.Context) error {
	for r.current {
		pause := r.opts.PollInterval
		if r.tracking {
			pause = min(pause, checkInterval)
		}
		if !r.wait(ctx, pause) {
			return ctx.Err()
		}
		unchanged, err := r.cached(ctx)
		if err != nil {
			return err
		}
		r.current = unchanged
	}
	// A client that caches has the answer the second time, unless the hash was changed in
	// between.
	r.tracking = false
	for attempt := 0; attempt < 3 && !r.tracking; attempt++ {
		var err error
		if r.tracking, err = r.cached(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wait returns after d or when the server has reported a change. It returns false if ctx
// has ended.
func (r *reader) wait(ctx context.Context, d time.Duration) bool {
	timer := r.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-r.changed:
	}
	return true
}

// cached returns whether the client has an answer about the hash without a request: then
// the server has reported no change since it was asked. Each run asks about a field of its
// own, for the cache may be shared.
func (r *reader) cached(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.RequestTimeout)
	defer cancel()
	result := r.client.DoCache(ctx, r.client.B().Hexists().Key(r.key).Field(r.probe).Cache(), r.opts.PollInterval)
	return result.IsCacheHit(), result.Error()
}

// readAll reads the hash, which a server does in one step.
func (r *reader) readAll(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.RequestTimeout)
	defer cancel()
	if err := r.checkRole(ctx); err != nil {
		return nil, err
	}
	count, err := r.client.Do(ctx, r.client.B().Hlen().Key(r.key).Build()).AsInt64()
	if err != nil {
		return nil, err
	}
	if count > int64(r.opts.MaxDocuments)+1 { // of which one may be the history
		return nil, fmt.Errorf("%d documents are more than Options.MaxDocuments allows, which is %d: none was applied",
			count-1, r.opts.MaxDocuments)
	}
	return r.client.Do(ctx, r.client.B().Hgetall().Key(r.key).Build()).AsStrMap()
}

// checkRole returns an error if the server is a replica that has lost its primary, or one
// that was the primary. Nodes of a cluster answer for other nodes with MOVED.
func (r *reader) checkRole(ctx context.Context) error {
	if r.noRole || r.client.Mode() == rueidis.ClientModeCluster {
		return nil
	}
	reply, err := r.client.Do(ctx, r.client.B().Role().Build()).ToArray()
	if refused, ok := rueidis.IsRedisErr(err); ok && isNotPermitted(refused) {
		r.noRole = true
		r.opts.Logger.Warn("penstock: Redis does not tell whether it is a replica, which may have old rules: permit the command ROLE",
			slog.String("source", r.Name()))
		return nil
	}
	if err != nil {
		return err
	}
	const link = 3 // the place of the state of a replica's link to its primary
	if role, err := reply[0].ToString(); err != nil || role != "slave" || len(reply) <= link {
		return err
	}
	if r.client.Mode() == rueidis.ClientModeSentinel {
		return errors.New("the server has become a replica: the sentinels have to name the primary")
	}
	if state, err := reply[link].ToString(); err != nil || state != "connected" {
		return errors.New("the server is a replica without a link to its primary, so its documents may be old")
	}
	return nil
}

// snapshot returns the documents in a hash, or why they cannot be applied now.
func (r *reader) snapshot(fields map[string]string) (snapshot.Snapshot, error) {
	text := fields[historyField]
	read := parseHistory(text)
	if err := r.checkHistory(read, len(fields) > 0); err != nil {
		return snapshot.Snapshot{}, err
	}
	r.present, r.read, r.olderSince = len(fields) > 0, read, 0
	delete(fields, historyField)
	state := snapshot.Snapshot{Revision: read.revision}
	for name, text := range fields {
		state.Documents = append(state.Documents, snapshot.Document("redis", name, []byte(text)))
	}
	return state, nil
}

// checkHistory returns an error if the documents were lost, or are older than those read
// before and may be so for the moment only.
func (r *reader) checkHistory(now history, present bool) error {
	switch {
	case r.present && !present:
		return errGone
	case now.older(r.read):
		instant := r.opts.Clock.Now()
		if r.olderSince == 0 {
			r.olderSince = max(1, instant)
		}
		if instant.Sub(r.olderSince) < r.opts.AcceptOlderAfter {
			return fmt.Errorf("redis: the server has revision %d, but %d was read before: a replica took over that lacks changes, "+
				"or the server is not the primary any more; its documents are applied if it stays so for %v",
				now.revision, r.read.revision, r.opts.AcceptOlderAfter)
		}
		r.warn("penstock: Redis has lost changes of rules, its documents are taken as they are", now)
	case r.read.id != "" && now.id != r.read.id:
		r.warn("penstock: documents in Redis were replaced by others, they are taken as they are", now)
	}
	return nil
}

func (r *reader) warn(message string, now history) {
	r.opts.Logger.Warn(message, slog.String("source", r.Name()),
		slog.Int64("revision", now.revision), slog.Int64("previous", r.read.revision))
}
