package etcdtest_test

import (
	"context"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// newGRPCProxy starts etcd's gRPC proxy in front of the server, as "etcd
// grpc-proxy start" does, and returns its endpoint.
func newGRPCProxy(t *testing.T, server *etcdtest.Server) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop(), Context: ctx})
	require.NoError(t, err)
	kv, kvDone := grpcproxy.NewKvProxy(client)
	watch, watchDone := grpcproxy.NewWatchProxy(ctx, zap.NewNop(), client)
	lease, leaseDone := grpcproxy.NewLeaseProxy(ctx, client)
	proxy := grpc.NewServer()
	pb.RegisterKVServer(proxy, kv)
	pb.RegisterWatchServer(proxy, watch)
	pb.RegisterLeaseServer(proxy, lease)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(listener) }()
	t.Cleanup(func() {
		proxy.Stop()
		assert.NoError(t, <-served)
		cancel()
		_ = client.Close()
		for _, done := range []<-chan struct{}{kvDone, watchDone, leaseDone} {
			<-done
		}
	})
	return "http://" + listener.Addr().String()
}

// The proxy merges the watches of several instances into one.
func TestInstancesBehindGRPCProxyReceiveChanges(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	endpoint := newGRPCProxy(t, server)
	var all []*sourcetest.Recorder
	for range 3 {
		s := follow(t, newSource(t, endpoint, shortBackoff()))
		s.AwaitDocuments(t, map[string]string{"a": "1"})
		all = append(all, s)
	}
	for _, text := range []string{"2", "3"} {
		put(t, server, "a", text)
		for _, s := range all {
			s.AwaitDocuments(t, map[string]string{"a": text})
			assert.Empty(t, s.Errors())
		}
	}
}

// The proxy ignores requests for progress.
func TestIdleWatchBehindGRPCProxyStaysConnected(t *testing.T) {
	server := start(t, etcdtest.Options{})
	idle(t, server, newGRPCProxy(t, server))
}

// The proxy resumes its own watch at the restored cluster.
func TestClusterRestoredBehindGRPCProxyIsReadAgain(t *testing.T) {
	t.Parallel()
	b := newBackup(t)
	b.writeUntil(t, 14, "read")
	virtual := clock.NewVirtual(time.Now())
	opts := shortBackoff()
	opts.Clock = virtual
	s := follow(t, newSource(t, newGRPCProxy(t, b.Server), opts))
	s.AwaitDocuments(t, map[string]string{"a": "read", "b": "read", "c": "read"})

	b.restore(t)
	for commit(t, b.Server, clientv3.OpPut("/elsewhere", "")) < 43 {
	}
	require.Eventually(t, func() bool {
		virtual.Advance(time.Second)
		return maps.Equal(s.Documents(), map[string]string{"a": "old", "b": "old", "c": "old"})
	}, eventTimeout, 10*time.Millisecond)
	put(t, b.Server, "a", "new")
	require.Eventually(t, func() bool {
		virtual.Advance(time.Second)
		return maps.Equal(s.Documents(), map[string]string{"a": "new", "b": "old", "c": "old"})
	}, eventTimeout, 10*time.Millisecond)
}

// The proxy renews leases every five seconds, by its own clock, and answers
// renewals only then.
func TestReportsBehindGRPCProxyAreRenewed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	server := start(t, etcdtest.Options{})
	var streams leaseStreams
	report(t, newSource(t, newGRPCProxy(t, server), reporting("a"), streams.options()...))
	awaitReport(t, server.Client(), "a", anyReport)
	_, lease, _ := reported(t, server.Client(), "a")
	require.Eventually(t, func() (renewed bool) {
		streams.note(func() { renewed = streams.renewed >= 3 })
		return renewed
	}, 3*eventTimeout, 10*time.Millisecond)
	_, same, there := reported(t, server.Client(), "a")
	assert.True(t, there)
	assert.Equal(t, lease, same)
	streams.note(func() { assert.Equal(t, 1, streams.opened) })

	_, err := server.Client().Revoke(t.Context(), lease)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, _, there := reported(t, server.Client(), "a")
		return there
	}, eventTimeout, 10*time.Millisecond, "a report that is lost is written anew")
}
