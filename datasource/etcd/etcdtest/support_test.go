package etcdtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

const prefix = "/penstock/shop/"

// start starts a server for the test.
func start(t *testing.T, opts etcdtest.Options) *etcdtest.Server {
	t.Helper()
	server, err := etcdtest.Start(opts)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return server
}

// shortBackoff returns options with very short backoff.
func shortBackoff() etcd.Options {
	return etcd.Options{
		MaxBackoff:     50 * time.Millisecond,
		RequestTimeout: 2 * time.Second,
		Logger:         slog.New(slog.DiscardHandler),
	}
}

// dial returns a client of the endpoint for the test.
func dial(t *testing.T, endpoint string, opts ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, Logger: zap.NewNop(), DialOptions: opts,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newSource returns a source on a client of its own.
func newSource(t *testing.T, endpoint string, opts etcd.Options, dialOpts ...grpc.DialOption) *etcd.Source {
	t.Helper()
	source, err := etcd.New(dial(t, endpoint, dialOpts...), prefix, opts)
	require.NoError(t, err)
	return source
}

// put writes a document and returns the revision.
func put(t *testing.T, server *etcdtest.Server, name, value string) int64 {
	t.Helper()
	return commit(t, server, clientv3.OpPut(prefix+name, value))
}

// remove deletes a document.
func remove(t *testing.T, server *etcdtest.Server, name string) {
	t.Helper()
	commit(t, server, clientv3.OpDelete(prefix+name))
}

// commit executes the operations in one transaction and returns its revision.
func commit(t *testing.T, server *etcdtest.Server, ops ...clientv3.Op) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	response, err := server.Client().Txn(ctx).Then(ops...).Commit()
	require.NoError(t, err)
	return response.Header.Revision
}

// compact compacts the server's history up to the revision.
func compact(t *testing.T, server *etcdtest.Server, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	_, err := server.Client().Compact(ctx, revision)
	require.NoError(t, err)
}

// putMany writes n documents and returns them.
func putMany(t *testing.T, server *etcdtest.Server, n int) map[string]string {
	t.Helper()
	const perTransaction = 100
	documents := make(map[string]string, n)
	var ops []clientv3.Op
	for i := range n {
		name, value := fmt.Sprintf("document-%05d", i), fmt.Sprintf("value %d", i)
		documents[name] = value
		if ops = append(ops, clientv3.OpPut(prefix+name, value)); len(ops) == perTransaction {
			commit(t, server, ops...)
			ops = nil
		}
	}
	if len(ops) > 0 {
		commit(t, server, ops...)
	}
	return documents
}
