package etcdtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// shortTimeouts returns options with short timeouts.
func shortTimeouts() etcd.Options {
	opts := shortBackoff()
	opts.WatchTimeout, opts.RequestTimeout = 300*time.Millisecond, 300*time.Millisecond
	return opts
}

func TestHangingFirstReadIsReportedAndRetried(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "orders.yaml", closed)
	network := newProxy(t, server)
	network.Stall()
	engine := newEngineOf(t, newSource(t, network.endpoint(), shortTimeouts()))

	require.Eventually(t, func() bool { return engine.Status().Sources[0].Err != nil }, eventTimeout, time.Millisecond)
	status := engine.Status().Sources[0]
	assert.False(t, status.Ready || status.Connected)
	require.ErrorContains(t, status.Err, "etcd: watching /penstock/shop/: ")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, engine.Ready(ctx), "etcd: watching /penstock/shop/: ")
	assert.True(t, passes(t, engine))

	network.Restore()
	ready(t, engine)
	assert.False(t, passes(t, engine))
}

// Every failure of the connection is reported, changes no documents, and is over
// once the network works again.
func TestSourceRecoversFromConnectionFailures(t *testing.T) {
	for name, fail := range map[string]func(network *proxy, server *etcdtest.Server) error{
		"cut": func(network *proxy, _ *etcdtest.Server) error {
			network.Cut()
			return nil
		},
		"nothing comes through": func(network *proxy, _ *etcdtest.Server) error {
			network.Stall()
			return nil
		},
		"half open: the server knows nothing of it": func(network *proxy, server *etcdtest.Server) error {
			network.Stall()
			return server.Restart()
		},
		"a byte in 20 milliseconds": func(network *proxy, _ *etcdtest.Server) error {
			network.Slow(20 * time.Millisecond)
			return nil
		},
		"reset in the middle of a response": func(network *proxy, _ *etcdtest.Server) error {
			network.ResetAfter(50_000)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, etcdtest.Options{Dir: t.TempDir()})
			network := newProxy(t, server)
			put(t, server, "a", "1")
			s := follow(t, open(t, shortTimeouts(), network.endpoint()))
			s.AwaitDocuments(t, map[string]string{"a": "1"})
			put(t, server, "a", "2")
			s.AwaitDocuments(t, map[string]string{"a": "2"}) // the watch works

			require.NoError(t, fail(network, server))
			long := strings.Repeat("x", 100_000)
			commit(t, server, clientv3.OpPut(prefix+"a", "3"), clientv3.OpPut(prefix+"b", long))
			s.AwaitError(t, anyError)
			for _, change := range s.Changes() {
				assert.Len(t, change.Documents, 1+min(1, int(change.Revision)/4), "no part of a transaction")
			}

			network.Restore()
			s.AwaitDocuments(t, map[string]string{"a": "3", "b": long})
			put(t, server, "a", "4")
			s.AwaitDocuments(t, map[string]string{"a": "4", "b": long})
			assert.Equal(t, []string{"1", "2", "3", "4"}, s.History("a"))
			inOrder(t, s)
		})
	}
}

// A source with its own client leaves a peer that no longer answers for another one.
func TestDeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	dead, alive := newProxy(t, server), newProxy(t, server)
	s := follow(t, open(t, shortTimeouts(), dead.endpoint(), alive.endpoint()))
	s.AwaitDocuments(t, map[string]string{})
	for i, network := range []*proxy{dead, alive, dead} {
		network.Stall()
		put(t, server, "a", fmt.Sprint(i))
		s.AwaitDocuments(t, map[string]string{"a": fmt.Sprint(i)})
		network.Restore()
	}
}
