package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
)

// renewals is a stream on which a lease is renewed. It stays open as long as it
// can: the client has its password checked for every stream that it opens.
type renewals struct {
	conn    *grpc.ClientConn // that it was opened on
	stream  pb.Lease_LeaseKeepAliveClient
	cancel  context.CancelFunc
	answers chan renewal  // closed when the stream has ended
	heard   clock.Instant // when the server has answered last, or the stream was opened
}

// renewal is what the server has answered, or why it does not.
type renewal struct {
	lease int64
	ttl   int64 // in seconds; 0 or less when the lease is gone
	err   error
}

// openRenewals opens a stream, which outlives ctx: whoever opens it closes it.
func openRenewals(ctx context.Context, conn *grpc.ClientConn, timeout time.Duration, now clock.Instant) (*renewals, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	late := time.AfterFunc(timeout, cancel)
	ended := context.AfterFunc(ctx, cancel)
	stream, err := pb.NewLeaseClient(conn).LeaseKeepAlive(lasting)
	switch inTime := late.Stop(); {
	case !inTime:
		err = unconnected(fmt.Errorf("%w: no answer within %v", errSilent, timeout), err)
	case err != nil:
	case !ended():
		err = ctx.Err()
	default:
		r := &renewals{conn: conn, stream: stream, cancel: cancel, answers: make(chan renewal, 1), heard: now}
		go r.receive(lasting)
		return r, nil
	}
	ended()
	cancel()
	return nil, err
}

// receive passes on the server's answers until the stream ends.
func (r *renewals) receive(ctx context.Context) {
	defer close(r.answers)
	for {
		answer, err := r.stream.Recv()
		select {
		case r.answers <- renewal{answer.GetID(), answer.GetTTL(), err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// renew asks the server to renew the lease. An error is explained by the answer.
func (r *renewals) renew(lease int64) { _ = r.stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}) }

// close ends the stream in order, or by force when the server has not ended its
// side in time. A server of etcd 3.4 counts a stream that is cut off as one that
// failed for want of a leader.
func (r *renewals) close(timeout time.Duration) {
	defer r.cancel()
	_ = r.stream.CloseSend()
	late := time.AfterFunc(timeout, r.cancel)
	defer late.Stop()
	for range r.answers { // until the server has ended its side
	}
}
