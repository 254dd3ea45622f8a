package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// follow applies all documents and then what changes, until that fails. It
// returns why.
//
// A member that cannot be watched must not be the one that every watch is opened
// on: as requests go to one member after the other, a session may well come to
// the same member each time.
func (r *run) follow(ctx context.Context, conn *grpc.ClientConn) (err error) {
	for range r.members {
		var opened bool
		opened, err = r.followMember(ctx, conn)
		if opened || !unreachable(err) {
			break
		}
	}
	return err
}

// followMember watches one member and applies what it reads and what changes. It
// returns whether the watch could be opened, and why it has ended.
//
// The watch is opened before the documents are read. What is read counts only if
// the server answers on the stream of the watch afterwards: then the server has
// been there all the time, with one history, and nothing that was written since
// can be missed. Were the watch opened afterwards, at the revision after that of
// the read, it could be one of another history, which came in between and has
// gone past that revision.
func (r *run) followMember(ctx context.Context, conn *grpc.ClientConn) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel(nil)

	watch, err := r.openWatch(ctx, cancel, pb.NewWatchClient(conn))
	if err != nil {
		return false, r.watching(err)
	}
	responses := make(chan received, maxQueued)
	background.Go(func() { receive(ctx, watch, responses) })
	kv := pb.NewKVClient(conn)
	all, err := r.readAll(ctx, kv, watch.opened)
	if err != nil {
		return true, fmt.Errorf("etcd: reading %s: %w", r.keys.Documents, err)
	}
	since, err := r.awaitAnswer(ctx, watch, responses)
	if err != nil {
		return true, r.watching(err)
	}
	r.applyAll(all)
	if err := r.applyNews(since); err != nil {
		return true, r.watching(err)
	}
	life := &signsOfLife{run: r, kv: kv, watch: watch, answers: make(chan answer, 1), reading: &background}
	return true, r.watching(r.applyChanges(ctx, life, responses))
}

func (r *run) watching(err error) error {
	return fmt.Errorf("etcd: watching %s: %w", r.keys.Documents, err)
}

// awaitAnswer has the server answer on the watch and returns what the watch has
// brought up to then.
func (r *run) awaitAnswer(ctx context.Context, watch *watchStream, responses <-chan received) (since news, err error) {
	watch.probe()
	late := time.NewTimer(r.opts.RequestTimeout)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return news{}, context.Cause(ctx)
		case <-late.C:
			return news{}, r.unanswered()
		case next := <-responses:
			answered, err := watch.take(&since, next)
			if err == nil {
				err = since.check(r.opts.MaxDocuments)
			}
			if err != nil || answered {
				return since, err
			}
		}
	}
}

// take adds what was received to the news. It returns whether that answers a
// probe, and why the watch has ended, if it has.
func (w *watchStream) take(n *news, next received) (answered bool, ended error) {
	if next.err != nil {
		return false, next.err
	}
	if err := w.ended(next.response); err != nil {
		return false, err
	}
	if next.response.WatchId == w.id {
		n.add(next.response)
	}
	if !w.answered(next.response) {
		return false, nil
	}
	n.revision = max(n.revision, next.response.Header.GetRevision())
	return true, nil
}

// applyChanges applies responses until one says that the watch has ended or
// none has come for too long.
func (r *run) applyChanges(ctx context.Context, life *signsOfLife, responses <-chan received) error {
	interval := r.opts.WatchTimeout / askTimes
	timer := r.opts.Clock.NewTimer(interval)
	defer timer.Stop()
	compared := newComparison(life)
	defer compared.timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case first := <-responses:
			err = r.applyQueued(life, queued(first, responses))
		case <-timer.C():
			err = life.ask(ctx)
		case answer := <-life.answers:
			err = life.take(answer)
		case <-compared.timer.C():
			if err = compared.next(ctx); err == nil {
				continue // that is no sign of life
			}
		case found := <-compared.found:
			if err = compared.take(found); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !life.asking {
			timer.Reset(interval)
		}
	}
}

// applyQueued applies the news among responses, all at once, and returns why the
// watch has ended, if it has. Of events that came in the meantime only what they
// lead to is applied: a source that is written to faster than documents can be
// applied does not fall behind.
func (r *run) applyQueued(life *signsOfLife, responses []received) (ended error) {
	var n news
	for _, next := range responses {
		if _, ended = life.watch.take(&n, next); ended != nil {
			break
		}
	}
	if err := r.applyNews(n); err != nil {
		return err
	}
	life.heard(n.revision)
	return ended
}

// applyAll applies all documents, as they were read.
func (r *run) applyAll(all contents) {
	r.checkHistory(momentOf(all.header))
	r.versions = all.versions
	r.connected()
	r.apply(all.change)
}

// applyNews applies what is later than what was applied before.
func (r *run) applyNews(n news) error {
	events := n.after(r.at.revision)
	for _, event := range events {
		if event.Type == mvccpb.Event_DELETE {
			delete(r.versions, r.documentName(event.Kv))
		} else {
			r.versions[r.documentName(event.Kv)] = event.Kv.ModRevision
		}
	}
	events = slices.DeleteFunc(events, func(e *mvccpb.Event) bool { return r.isConfirmationKey(e.Kv) && !confirms(e.Kv) })
	if len(events) == 0 {
		return nil
	}
	change := r.change(events)
	r.at.revision = change.Revision
	if err := r.checkCount(r.documents()); err != nil {
		return err
	}
	r.apply(change)
	return nil
}
