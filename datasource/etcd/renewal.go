package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
)

// renewals is a stream on which a lease is renewed. It is kept open as long as
// possible, because the server checks the password for every new stream.
type renewals struct {
	conn       *grpc.ClientConn // of the stream
	stream     pb.Lease_LeaseKeepAliveClient
	cancel     context.CancelFunc
	answers    chan renewal  // closed when the stream has ended
	lastAnswer clock.Instant // time of the last answer, at first of opening
}

// renewal is an answer of the server, or the error of the stream.
type renewal struct {
	lease int64
	ttl   int64 // in seconds; 0 or less if the lease has expired
	err   error
}

// openRenewals opens a stream. The stream outlives ctx: the caller closes it.
func openRenewals(ctx context.Context, conn *grpc.ClientConn, timeout time.Duration, now clock.Instant) (*renewals, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	late := time.AfterFunc(timeout, cancel)
	ended := context.AfterFunc(ctx, cancel)
	stream, err := pb.NewLeaseClient(conn).LeaseKeepAlive(lasting)
	switch inTime := late.Stop(); {
	case !inTime:
		err = withDialReason(fmt.Errorf("%w: no answer within %v", errSilent, timeout), err)
	case err != nil:
	case !ended():
		err = ctx.Err()
	default:
		r := &renewals{conn: conn, stream: stream, cancel: cancel, answers: make(chan renewal, 1), lastAnswer: now}
		go r.receive(lasting)
		return r, nil
	}
	ended()
	cancel()
	return nil, err
}

// receive sends the server's answers to the channel until the stream ends.
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

// renew asks the server to renew the lease. An error shows in the answer.
func (r *renewals) renew(lease int64) { _ = r.stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}) }

// close closes the stream gracefully, and cancels it if the server does not end its
// side in time. A server of etcd 3.4 counts a cancelled stream as one that failed
// for lack of a leader.
func (r *renewals) close(timeout time.Duration) {
	defer r.cancel()
	_ = r.stream.CloseSend()
	late := time.AfterFunc(timeout, r.cancel)
	defer late.Stop()
	for range r.answers { // until the server has ended its side
	}
}
