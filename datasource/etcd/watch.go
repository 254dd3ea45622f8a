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

// follow applies all documents and then their changes until an error occurs, which
// it returns.
//
// It tries to open the watch once for each member: requests go to the members in
// turn, and otherwise every session could start with the same unreachable member.
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

// followMember watches one member and applies all documents and then their changes.
// It returns whether the watch could be opened, and the error that ended it.
//
// The watch is opened before the documents are read. A read counts only if the
// server answers on the stream of the watch afterwards: then the server was
// connected all the time, with one history, and no later write can be missed. A
// watch that is opened after the read, at the next revision, could belong to another
// history, of a cluster that was restored in between and is already past that
// revision.
func (r *run) followMember(ctx context.Context, conn *grpc.ClientConn) (opened bool, err error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel(nil)

	watch, err := r.openWatch(ctx, cancel, pb.NewWatchClient(conn))
	if err != nil {
		return false, r.wrapWatchError(err)
	}
	responses := make(chan received, maxQueued)
	background.Go(func() { receive(ctx, watch, responses) })
	kv := pb.NewKVClient(conn)
	all, err := r.readAll(ctx, kv, watch.openedAt)
	if err != nil {
		return true, fmt.Errorf("etcd: reading %s: %w", r.keys.Documents, err)
	}
	pending, err := r.awaitAnswer(ctx, watch, responses)
	if err != nil {
		return true, r.wrapWatchError(err)
	}
	r.applyAll(all)
	if err := r.applyEvents(pending); err != nil {
		return true, r.wrapWatchError(err)
	}
	beat := &heartbeat{run: r, kv: kv, watch: watch, answers: make(chan answer, 1), readers: &background}
	return true, r.wrapWatchError(r.applyChanges(ctx, beat, responses))
}

func (r *run) wrapWatchError(err error) error {
	return fmt.Errorf("etcd: watching %s: %w", r.keys.Documents, err)
}

// awaitAnswer sends a probe, waits for its answer, and returns the events that the
// watch has delivered until then.
func (r *run) awaitAnswer(ctx context.Context, watch *watchStream, responses <-chan received) (pending eventSet, err error) {
	watch.probe()
	late := time.NewTimer(r.opts.RequestTimeout)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return eventSet{}, context.Cause(ctx)
		case <-late.C:
			return eventSet{}, r.noAnswerError()
		case next := <-responses:
			answered, err := watch.collect(&pending, next)
			if err == nil {
				err = pending.check(r.opts.MaxDocuments)
			}
			if err != nil || answered {
				return pending, err
			}
		}
	}
}

// collect adds the events of a response. It returns whether the response answers a
// probe, and the reason if it ends the watch.
func (w *watchStream) collect(to *eventSet, next received) (answered bool, ended error) {
	if next.err != nil {
		return false, next.err
	}
	if err := w.ended(next.response); err != nil {
		return false, err
	}
	if next.response.WatchId == w.id {
		to.add(next.response)
	}
	if !w.handleProbeAnswer(next.response) {
		return false, nil
	}
	to.revision = max(to.revision, next.response.Header.GetRevision())
	return true, nil
}

// applyChanges applies responses until one ends the watch or none has arrived for
// too long. It returns the error that ended the watch.
func (r *run) applyChanges(ctx context.Context, beat *heartbeat, responses <-chan received) error {
	interval := r.opts.WatchTimeout / maxProbes
	timer := r.opts.Clock.NewTimer(interval)
	defer timer.Stop()
	compared := newComparison(beat)
	defer compared.timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case first := <-responses:
			err = r.applyQueued(beat, drain(first, responses))
		case <-timer.C():
			err = beat.probe(ctx)
		case answer := <-beat.answers:
			err = beat.handleAnswer(answer)
		case <-compared.timer.C():
			if err = compared.onTimer(ctx); err == nil {
				continue // does not show that the watch is alive
			}
		case found := <-compared.found:
			if err = compared.handleResult(found); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !beat.reading {
			timer.Reset(interval)
		}
	}
}

// applyQueued applies the events of all queued responses as one change, so that a
// source does not fall behind when documents are written faster than they can be
// applied. It returns the reason if a response ends the watch.
func (r *run) applyQueued(beat *heartbeat, responses []received) (ended error) {
	var pending eventSet
	for _, next := range responses {
		if _, ended = beat.watch.collect(&pending, next); ended != nil {
			break
		}
	}
	if err := r.applyEvents(pending); err != nil {
		return err
	}
	beat.markSeen(pending.revision)
	return ended
}

// applyAll applies the result of a complete read.
func (r *run) applyAll(all contents) {
	r.checkHistory(positionOf(all.header))
	r.versions = all.versions
	r.markConnected()
	r.apply(all.change)
}

// applyEvents applies the events that are later than what was applied before.
func (r *run) applyEvents(pending eventSet) error {
	events := pending.after(r.position.revision)
	for _, event := range events {
		if event.Type == clientv3.EventTypeDelete {
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
	r.position.revision = change.Revision
	if err := r.checkCount(r.documents()); err != nil {
		return err
	}
	r.apply(change)
	return nil
}
