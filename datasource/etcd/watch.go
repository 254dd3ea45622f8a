package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
)

// watch applies all documents, as they were read, and then what changes, until
// that fails. It returns why.
//
// A member that cannot be watched must not be the one that every watch is opened
// on: as requests go to one member after the other, a session may well come to
// the same member each time.
func (r *run) watch(ctx context.Context, conn *grpc.ClientConn, all core.Change) error {
	start := all.Revision + 1
	for attempt := range r.members {
		opened := func() {
			if attempt == 0 {
				r.note(all)
				r.apply(all)
			}
		}
		watched, err := r.watchMember(ctx, conn, start, opened)
		if watched || !unreachable(err) || attempt == r.members-1 {
			return err
		}
	}
	return nil
}

// watchMember watches one member, and tells whether that could be begun and why
// it has ended. It calls opened when it knows. The watch is opened before
// documents are applied: whoever has seen them can count on changes being seen
// at once.
//
// It speaks the watch protocol itself because the client's own watcher
// reconnects behind the caller's back and resumes where it was, which is wrong
// for a cluster that was restored meanwhile.
func (r *run) watchMember(
	ctx context.Context, conn *grpc.ClientConn, start int64, opened func(),
) (watched bool, err error) {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel(nil)

	stream, err := r.openWatch(ctx, cancel, pb.NewWatchClient(conn), start)
	opened()
	if err != nil {
		return false, err
	}
	r.pause.succeed()

	responses := make(chan received, maxQueued)
	background.Go(func() { receive(ctx, stream, responses) })
	life := &signsOfLife{
		run: r, kv: pb.NewKVClient(conn), stream: stream, start: start,
		answers: make(chan answer, 1), reading: &background,
	}
	return true, r.applyChanges(ctx, life, responses)
}

// openWatch returns a stream on which the server has confirmed the watch.
func (r *run) openWatch(
	ctx context.Context, cancel context.CancelCauseFunc, client pb.WatchClient, start int64,
) (pb.Watch_WatchClient, error) {
	late := time.AfterFunc(r.opts.RequestTimeout, func() {
		cancel(fmt.Errorf("%w: no answer within %v", errSilent, r.opts.RequestTimeout))
	})
	defer late.Stop()
	stream, err := client.Watch(ctx, r.callOptions()...)
	if err != nil {
		return nil, watchError(ctx, err)
	}
	first, end := r.followedRange()
	// A failed Send is explained by the Recv that follows.
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: first, RangeEnd: end, StartRevision: start},
	}})
	created, err := stream.Recv()
	if err != nil {
		return nil, watchError(ctx, err)
	}
	if created.Header.GetClusterId() != r.at.cluster {
		return nil, errReplaced
	}
	return stream, cancelled(created)
}

// applyChanges applies responses until one says that the watch has ended or
// none has come for too long.
func (r *run) applyChanges(ctx context.Context, life *signsOfLife, responses <-chan received) error {
	interval := r.opts.WatchTimeout / askTimes
	timer := r.opts.Clock.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case first := <-responses:
			revision, err := r.applyQueued(queued(first, responses))
			if err != nil {
				return err
			}
			life.heard(revision)
		case <-timer.C():
			if err := life.ask(ctx); err != nil {
				return err
			}
		case answer := <-life.answers:
			if err := life.take(answer); err != nil {
				return err
			}
		}
		if !life.asking {
			timer.Reset(interval)
		}
	}
}

// applyQueued applies the news among responses, all at once, and returns the
// revision that the watch has come to, and why it has ended, if it has. Of
// events that came in the meantime only what they lead to is applied: a source
// that is written to faster than documents can be applied does not fall behind.
func (r *run) applyQueued(responses []received) (revision int64, ended error) {
	var events []*mvccpb.Event
	for _, next := range responses {
		if ended = next.ended(); ended != nil {
			break
		}
		revision = next.response.Header.GetRevision()
		events = append(events, next.response.Events...)
	}
	// A response without news is a sign of life.
	news := slices.DeleteFunc(events, func(e *mvccpb.Event) bool {
		return e.Kv.ModRevision <= r.at.revision || r.isConfirmation(e.Kv) && !confirms(e.Kv)
	})
	if len(news) == 0 {
		return revision, ended
	}
	change := r.change(news)
	r.note(change)
	if err := r.checkCount(len(r.names)); err != nil {
		return revision, err
	}
	r.apply(change)
	return revision, ended
}

// cancelled returns why the server ended the watch, nil if it did not.
func cancelled(response *pb.WatchResponse) error {
	switch {
	case response.CompactRevision != 0:
		return rpctypes.ErrCompacted
	case response.Canceled:
		return errors.New("cancelled by the server: " + response.CancelReason)
	default:
		return nil
	}
}

// watchError returns what the source itself ended the watch for, or else the
// error in the client's terms.
func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return rpctypes.Error(err)
}
