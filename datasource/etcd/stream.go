package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// watchStream is a stream on which the server has confirmed the watch of the
// documents.
//
// It speaks the watch protocol itself because the client's own watcher
// reconnects behind the caller's back and resumes where it was, which is wrong
// for a cluster that was restored meanwhile.
type watchStream struct {
	pb.Watch_WatchClient
	id     int64
	opened moment // of the member; zero if a proxy in between does not tell
	key    []byte // that probes watch
	probes int64  // made so far
}

// openWatch returns a stream on which the server has confirmed the watch of
// whatever changes from now on.
func (r *run) openWatch(
	ctx context.Context, cancel context.CancelCauseFunc, client pb.WatchClient,
) (*watchStream, error) {
	late := time.AfterFunc(r.opts.RequestTimeout, func() { cancel(r.unanswered()) })
	defer late.Stop()
	stream, err := client.Watch(ctx, r.callOptions()...)
	if err != nil {
		return nil, unconnected(watchError(ctx, err), err)
	}
	first, end := r.followedRange()
	// A failed Send is explained by the Recv that follows.
	_ = stream.Send(createWatch(&pb.WatchCreateRequest{Key: first, RangeEnd: end}))
	created, err := stream.Recv()
	if err != nil {
		return nil, watchError(ctx, err)
	}
	w := &watchStream{Watch_WatchClient: stream, id: created.WatchId, key: first}
	if cluster := created.Header.GetClusterId(); cluster != 0 {
		// Not the term: that of a member that was cut off may be ahead for a while.
		w.opened = moment{cluster: cluster, revision: created.Header.Revision}
	}
	if created.Canceled {
		return nil, cancelled(created.CancelReason)
	}
	return w, nil
}

func createWatch(create *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// probe asks the server to answer on this stream. It does so by opening another
// watch, which answered closes: that is answered by every version of etcd and by
// its proxy, while requests for progress are ignored by the proxy, and by etcd on
// a watch that nothing was written to yet. To refuse it, because the token of the
// stream has expired, is an answer too.
func (w *watchStream) probe() {
	w.probes++
	// The number is given: in some versions of etcd 3.4 and 3.5 a refusal has that of
	// the request, and hides the watch of that number.
	//
	// A failed Send is explained by the Recv that waits for responses.
	_ = w.Send(createWatch(&pb.WatchCreateRequest{Key: w.key, WatchId: w.id + w.probes}))
}

// answered returns whether a response answers a probe, and ends the watch of that.
func (w *watchStream) answered(response *pb.WatchResponse) bool {
	if response.Created && !response.Canceled {
		_ = w.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: response.WatchId},
		}})
	}
	return response.Created
}

// ended returns why the server ended the watch, nil if it did not.
func (w *watchStream) ended(response *pb.WatchResponse) error {
	switch {
	case response.Created || response.WatchId >= 0 && response.WatchId != w.id: // of a probe
		return nil
	case response.CompactRevision != 0:
		return rpctypes.ErrCompacted
	case response.Canceled:
		return cancelled(response.CancelReason)
	default:
		return nil
	}
}

// cancelled returns the reason that the server gives in the client's terms, if it
// has any.
func cancelled(reason string) error {
	_, text, isStatus := strings.Cut(reason, " desc = ")
	if !isStatus {
		text = reason
	}
	if known, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(errors.New(text))); ok {
		return known
	}
	return errors.New("cancelled by the server: " + reason)
}

// unanswered is why a watch is given up on which no answer came in time.
func (r *run) unanswered() error {
	return fmt.Errorf("%w: no answer within %v", errSilent, r.opts.RequestTimeout)
}

// unconnected returns the error with which a stream could not be opened, with
// what kept the connection from being made, if it waited for one in vain.
func unconnected(err, of error) error {
	_, reason, found := strings.Cut(status.Convert(of).Message(), "latest balancer error: ")
	if !found || !errors.Is(err, errSilent) {
		return err
	}
	return fmt.Errorf("%w: %s", err, reason)
}

// watchError returns what the source itself ended the watch for, or else the
// error in the client's terms.
func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return rpctypes.Error(err)
}
