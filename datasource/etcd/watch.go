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

// received is what came from the server: a response, or why there is none.
type received struct {
	response *pb.WatchResponse
	err      error
}

// watch applies all documents, as they were read, and then what changes, until
// that fails. It returns why. The watch is opened first: whoever has seen the
// documents applied can count on changes being seen at once.
//
// It speaks the watch protocol itself because the client's own watcher
// reconnects behind the caller's back and resumes where it was, which is wrong
// for a cluster that was restored meanwhile.
func (r *run) watch(ctx context.Context, conn *grpc.ClientConn, all core.Change) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var receiver sync.WaitGroup
	defer receiver.Wait()
	defer cancel(nil)

	start := all.Revision + 1
	stream, err := r.openWatch(ctx, cancel, pb.NewWatchClient(conn), start)
	r.note(all)
	r.apply(all)
	if err != nil {
		return err
	}
	r.pause.succeed()

	responses := make(chan received)
	receiver.Go(func() { receive(ctx, stream, responses) })
	life := signsOfLife{run: r, kv: pb.NewKVClient(conn), stream: stream, start: start}
	return r.applyChanges(ctx, life, responses)
}

// openWatch returns a stream on which the server has confirmed the watch.
func (r *run) openWatch(
	ctx context.Context, cancel context.CancelCauseFunc, client pb.WatchClient, start int64,
) (pb.Watch_WatchClient, error) {
	late := time.AfterFunc(r.opts.RequestTimeout, func() {
		cancel(fmt.Errorf("no answer within %v", r.opts.RequestTimeout))
	})
	defer late.Stop()
	stream, err := client.Watch(ctx, r.callOptions()...)
	if err != nil {
		return nil, watchError(ctx, err)
	}
	first, end := r.documentRange()
	// A failed Send is explained by the Recv that follows.
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
		CreateRequest: &pb.WatchCreateRequest{Key: first, RangeEnd: end, StartRevision: start},
	}})
	created, err := stream.Recv()
	if err != nil {
		return nil, watchError(ctx, err)
	}
	if created.Header.GetClusterId() != r.cluster {
		return nil, errReplaced
	}
	return stream, cancelled(created)
}

// receive passes on what the server sends until ctx or the stream ends.
func receive(ctx context.Context, stream pb.Watch_WatchClient, to chan<- received) {
	for {
		response, err := stream.Recv()
		select {
		case to <- received{response, watchError(ctx, err)}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// applyChanges applies responses until one says that the watch has ended or
// none has come for too long.
func (r *run) applyChanges(ctx context.Context, life signsOfLife, responses <-chan received) error {
	interval := r.opts.WatchTimeout / askTimes
	timer := r.opts.Clock.NewTimer(interval)
	defer timer.Stop()
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case next := <-responses:
			if next.err != nil {
				return next.err
			}
			if err := r.applyResponse(next.response); err != nil {
				return err
			}
			asked = 0
		case <-timer.C():
			if asked++; asked == askTimes {
				return fmt.Errorf("the server has been silent for %v", r.opts.WatchTimeout)
			}
			alive, err := life.ask(ctx)
			if err != nil {
				return err
			}
			if alive {
				asked = 0
			}
		}
		timer.Reset(interval)
	}
}

// applyResponse applies a response's events, if any are news: one without them
// is a sign of life.
func (r *run) applyResponse(response *pb.WatchResponse) error {
	if err := cancelled(response); err != nil {
		return err
	}
	events := slices.DeleteFunc(response.Events, func(e *mvccpb.Event) bool { return e.Kv.ModRevision <= r.revision })
	if len(events) == 0 {
		return nil
	}
	change := r.change(events)
	r.note(change)
	if err := r.checkCount(len(r.names)); err != nil {
		return err
	}
	r.apply(change)
	return nil
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
