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
// It implements the watch protocol itself because the client's own watcher
// silently reconnects and resumes where it was, which is wrong if the cluster was
// restored meanwhile.
type watchStream struct {
	pb.Watch_WatchClient
	id       int64
	openedAt position // of the member; zero if a proxy does not report it
	key      []byte   // watched by probes
	probes   int64    // sent so far
}

// openWatch opens a stream and returns once the server has confirmed the watch of
// all changes from then on.
func (r *run) openWatch(
	ctx context.Context, cancel context.CancelCauseFunc, client pb.WatchClient,
) (*watchStream, error) {
	late := time.AfterFunc(r.opts.RequestTimeout, func() { cancel(r.noAnswerError()) })
	defer late.Stop()
	stream, err := client.Watch(ctx, r.callOptions()...)
	if err != nil {
		return nil, withDialReason(watchError(ctx, err), err)
	}
	first, end := r.followedRange()
	// If Send fails, the Recv that follows returns the reason.
	_ = stream.Send(createWatch(&pb.WatchCreateRequest{Key: first, RangeEnd: end}))
	created, err := stream.Recv()
	if err != nil {
		return nil, watchError(ctx, err)
	}
	w := &watchStream{Watch_WatchClient: stream, id: created.WatchId, key: first}
	if cluster := created.Header.GetClusterId(); cluster != 0 {
		// Without the term: that of a partitioned member may be ahead for a while.
		w.openedAt = position{cluster: cluster, revision: created.Header.Revision}
	}
	if created.Canceled {
		return nil, cancelled(created.CancelReason)
	}
	return w, nil
}

func createWatch(create *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
}

// probe asks the server to answer on this stream. It opens another watch, which
// handleProbeAnswer closes. Every version of etcd and its proxy answer that, while the proxy
// ignores requests for progress, as does etcd on a watch that has had no event yet.
// A refusal, because the token of the stream has expired, is an answer too.
func (w *watchStream) probe() {
	w.probes++
	// The ID is set explicitly: in some versions of etcd 3.4 and 3.5 a refusal has
	// the ID of the request and hides the watch with that ID.
	//
	// If Send fails, the Recv that waits for responses returns the reason.
	_ = w.Send(createWatch(&pb.WatchCreateRequest{Key: w.key, WatchId: w.id + w.probes}))
}

// handleProbeAnswer reports whether a response answers a probe, and if so closes the watch
// that the probe has opened.
func (w *watchStream) handleProbeAnswer(response *pb.WatchResponse) bool {
	if response.Created && !response.Canceled {
		_ = w.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: response.WatchId},
		}})
	}
	return response.Created
}

// ended returns the reason if the response ends the watch, nil otherwise.
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

// cancelled converts the server's reason to an error of the client library, if
// there is one for it.
func cancelled(reason string) error {
	_, text, isStatus := strings.Cut(reason, " desc = ")
	if !isStatus {
		text = reason
	}
	if known := (rpctypes.EtcdError{}); errors.As(rpctypes.Error(errors.New(text)), &known) {
		return known
	}
	return errors.New("cancelled by the server: " + reason)
}

// noAnswerError is the error of a watch on which no answer came in time.
func (r *run) noAnswerError() error {
	return fmt.Errorf("%w: no answer within %v", errSilent, r.opts.RequestTimeout)
}

// withDialReason adds to an error of opening a stream why there was no connection, if
// it waited for one in vain.
func withDialReason(err, of error) error {
	_, reason, found := strings.Cut(status.Convert(of).Message(), "latest balancer error: ")
	if !found || !errors.Is(err, errSilent) {
		return err
	}
	return fmt.Errorf("%w: %s", err, reason)
}

// watchError returns the cause if the source itself ended the watch. Otherwise it
// converts the error to one of the client library.
func watchError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return rpctypes.Error(err)
}
