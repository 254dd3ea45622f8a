package etcdtest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// leaseStreams counts how the streams for renewals of leases are opened and closed.
type leaseStreams struct {
	mu      sync.Mutex // guards the fields below
	opened  int
	renewed int
	ends    []error
	logins  int
}

func (l *leaseStreams) note(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

func (l *leaseStreams) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			open grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if !strings.HasSuffix(method, "/LeaseKeepAlive") {
				return stream, err
			}
			l.note(func() { l.opened++ })
			return leaseStream{stream, l}, err
		}),
		onRequest(func(request any) {
			if _, ok := request.(*pb.AuthenticateRequest); ok {
				l.note(func() { l.logins++ })
			}
		}),
	}
}

type leaseStream struct {
	grpc.ClientStream
	all *leaseStreams
}

func (l leaseStream) RecvMsg(message any) error {
	err := l.ClientStream.RecvMsg(message)
	l.all.note(func() {
		if err != nil {
			l.all.ends = append(l.all.ends, err)
		} else {
			l.all.renewed++
		}
	})
	return err
}

// Each stream costs the server a password check, and etcd 3.4 counts a cancelled
// stream as a failure.
func TestLeaseIsRenewedOnOneStreamThatIsClosedGracefully(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.RoleGrantPermission(t.Context(), "rules", instances,
		clientv3.GetPrefixRangeEnd(instances), clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	var streams leaseStreams
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.Endpoint()}, Username: "reader", Password: "reader",
		Logger: zap.NewNop(), DialOptions: streams.options(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	virtual := clock.NewVirtual(time.Now())
	opts := reporting("a")
	opts.Clock, opts.WatchTimeout = virtual, 24*time.Hour
	source, err := etcd.New(client, prefix, opts)
	require.NoError(t, err)
	s := &sourcetest.Recorder{}
	stop := run(t, source, s)
	s.AwaitDocuments(t, map[string]string{})
	awaitReport(t, root, "a", anyReport)

	for n := 1; n <= 20; n++ {
		virtual.Advance(reportInterval) // once: a slow answer must not count as a missing one
		require.Eventually(t, func() (renewed bool) {
			streams.note(func() { renewed = streams.renewed >= n })
			return renewed
		}, eventTimeout, time.Millisecond)
	}
	stop()
	_, _, there := reported(t, root, "a")
	assert.False(t, there)
	streams.note(func() {
		assert.Equal(t, 1, streams.opened)
		assert.Len(t, streams.ends, 1)
		assert.ErrorIs(t, errors.Join(streams.ends...), io.EOF)
		assert.Equal(t, 3, streams.logins, "one for the client, one for the watch, one for the lease")
	})
}

// An expired lease, a deleted report and a broken stream are each repaired, in any
// order.
func TestBrokenRenewalStreamIsReopened(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	network := newProxy(t, server)
	var streams leaseStreams
	virtual := clock.NewVirtual(time.Now())
	opts := reporting("a")
	opts.Clock = virtual
	report(t, newSource(t, network.endpoint(), opts, streams.options()...))
	awaitReport(t, server.Client(), "a", anyReport)
	renewed := func() (n int) {
		streams.note(func() { n = streams.renewed })
		return n
	}
	awaitRenewal := func() {
		before := renewed()
		require.Eventually(t, func() bool {
			virtual.Advance(time.Second)
			return renewed() > before
		}, eventTimeout, 10*time.Millisecond)
	}
	for range 3 {
		awaitRenewal()
		network.Cut()
		network.Restore()
	}
	awaitRenewal()
	_, lease, _ := reported(t, server.Client(), "a")
	_, err := server.Client().Revoke(t.Context(), lease)
	require.NoError(t, err)
	awaitRenewal()
	require.Eventually(t, func() bool {
		_, again, there := reported(t, server.Client(), "a")
		if !there {
			virtual.Advance(time.Second)
		}
		return there && again != lease
	}, eventTimeout, 10*time.Millisecond)
}
