package etcdtest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// failingWatches makes watches fail with the first response after the documents were
// applied, while dying is true.
func failingWatches(dying *atomic.Bool) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		if !strings.HasSuffix(method, "/Watch") {
			return stream, err
		}
		return &failingStream{ClientStream: stream, failing: dying}, err
	})
}

type failingStream struct {
	grpc.ClientStream
	failing  *atomic.Bool
	answered bool // the probe was answered; then the documents are applied
}

func (m *failingStream) RecvMsg(message any) error {
	err := m.ClientStream.RecvMsg(message)
	if m.answered && m.failing.Load() {
		return status.Error(codes.Unavailable, "the connection is gone")
	}
	if response, ok := message.(*pb.WatchResponse); ok && err == nil && response.Created && response.WatchId > 0 {
		m.answered = true
	}
	return err
}

// A connection that is lost right after each read does not cause many reads: the
// pause grows until a connection has lasted.
func TestPausesGrowUntilAConnectionHasLasted(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	virtual := clock.NewVirtual(time.Now())
	opts := shortBackoff()
	opts.Clock, opts.MinBackoff, opts.MaxBackoff = virtual, 100*time.Millisecond, 5*time.Second
	var dying atomic.Bool
	dying.Store(true)
	s := follow(t, newSource(t, server.Endpoint(), opts, failingWatches(&dying)))
	paused := func(after int) {
		require.Eventually(t, func() bool {
			return len(s.Errors()) == after && virtual.Timers() == 1
		}, eventTimeout, 100*time.Microsecond, "pause %d", after)
	}
	// end ends the pause and returns how long it was.
	end := func() (pause time.Duration) {
		lost := len(s.Errors())
		for virtual.Timers() == 1 && len(s.Errors()) == lost { // otherwise the next pause has begun
			virtual.Advance(10 * time.Millisecond)
			pause += 10 * time.Millisecond
		}
		return pause
	}

	const losses = 100
	var paused100 time.Duration
	for n := range losses {
		paused(n + 1)
		if n == losses-1 {
			assert.Len(t, s.Changes(), losses, "each read was applied")
			dying.Store(false)
		}
		paused100 += end()
	}
	// A pause is 2.5 s on average: 100 s is ten standard deviations below.
	assert.Greater(t, paused100, 100*time.Second)

	require.Eventually(t, func() bool { return len(s.Changes()) == losses+1 && virtual.Timers() == 2 }, eventTimeout, time.Millisecond)
	virtual.Advance(opts.MaxBackoff)
	dying.Store(true)
	put(t, server, "a", "2")
	paused(losses + 1)
	assert.LessOrEqual(t, end(), opts.MinBackoff+10*time.Millisecond, "that one has lasted")
}
