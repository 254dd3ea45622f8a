package etcdtest_test

import (
	"net"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func TestServerServesWhenStartReturns(t *testing.T) {
	began := time.Now()
	server := start(t, etcdtest.Options{})
	t.Logf("up after %v", time.Since(began))
	put(t, server, "a", "1")
	response, err := server.Client().Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	require.Len(t, response.Kvs, 1)

	endpoint, err := url.Parse(server.Endpoint())
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", endpoint.Hostname())
}

func TestStopEndsOpenWatchesAndIsIdempotent(t *testing.T) {
	least := time.Hour // a busy machine may take long now and then
	for tries := 0; least > 4*time.Second && tries < 5; tries++ {
		server := start(t, etcdtest.Options{})
		watch := dial(t, server.Endpoint()).Watch(clientv3.WithRequireLeader(t.Context()), "a", clientv3.WithCreatedNotify())
		require.True(t, (<-watch).Created)

		began := time.Now()
		server.Stop()
		least = min(least, time.Since(began))
		assert.Nil(t, server.Client())
		server.Stop()
	}
	assert.Less(t, least, 4*time.Second, "a graceful stop would wait for the watch for 5 seconds")
}

func TestStopEndsDespiteSilentConnections(t *testing.T) {
	t.Parallel()
	peers := make(chan string, 10)
	server := start(t, etcdtest.Options{Dir: t.TempDir(), Configure: func(c *embed.Config) { peers <- c.ListenPeerUrls[0].Host }})
	put(t, server, "a", "1")
	endpoint, err := url.Parse(server.Endpoint())
	require.NoError(t, err)
	for _, address := range []string{endpoint.Host, <-peers} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(eventTimeout):
		require.Fail(t, "Stop hangs")
	}
	require.NoError(t, server.Restart(), "ports and data are free")
	response, err := server.Client().Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	assert.Len(t, response.Kvs, 1)
}

func TestRestartKeepsAddressAndData(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir(), Fsync: true})
	put(t, server, "a", "1")
	endpoint := server.Endpoint()
	for _, how := range []string{"while it runs", "after a stop"} {
		if how == "after a stop" {
			server.Stop()
		}
		require.NoError(t, server.Restart(), how)
		assert.Equal(t, endpoint, server.Endpoint(), how)
		response, err := server.Client().Get(t.Context(), prefix+"a")
		require.NoError(t, err, how)
		assert.Len(t, response.Kvs, 1, how)
	}
}

func TestRestartWaitsForItsPort(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	put(t, server, "a", "1")
	endpoint, err := url.Parse(server.Endpoint())
	require.NoError(t, err)
	server.Stop()
	taken, err := net.Listen("tcp", endpoint.Host)
	require.NoError(t, err)
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart() }()
	time.Sleep(300 * time.Millisecond) // for an attempt to fail; one that comes later does not
	require.NoError(t, taken.Close())
	require.NoError(t, <-restarted)
	response, err := server.Client().Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	assert.Len(t, response.Kvs, 1)
}

func TestTemporaryDataAreRemovedByStop(t *testing.T) {
	var dir string
	server := start(t, etcdtest.Options{Configure: func(c *embed.Config) { dir = c.Dir }})
	put(t, server, "a", "1")
	require.DirExists(t, dir)
	require.NoError(t, server.Restart())
	response, err := server.Client().Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	assert.Len(t, response.Kvs, 1, "a restart without a stop keeps the data")

	server.Stop()
	assert.NoDirExists(t, dir)
	require.NoError(t, server.Restart())
	response, err = server.Client().Get(t.Context(), prefix+"a")
	require.NoError(t, err)
	assert.Empty(t, response.Kvs)
}

func TestServersAreIsolated(t *testing.T) {
	const servers = 4
	var wg sync.WaitGroup
	started := make(chan *etcdtest.Server, servers)
	for range servers {
		wg.Go(func() {
			server, err := etcdtest.Start(etcdtest.Options{})
			if assert.NoError(t, err) {
				started <- server
			}
		})
	}
	wg.Wait()
	close(started)
	endpoints := make(map[string]bool)
	for server := range started {
		put(t, server, "a", server.Endpoint())
		endpoints[server.Endpoint()] = true
		server.Stop()
	}
	assert.Len(t, endpoints, servers)
}

func TestFailedStartReturnsTheReason(t *testing.T) {
	t.Run("directory is a file", func(t *testing.T) {
		file := t.TempDir() + "/file"
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		_, err := etcdtest.Start(etcdtest.Options{Dir: file})
		require.ErrorContains(t, err, "etcdtest: starting the server: ")
	})
	t.Run("configuration is wrong", func(t *testing.T) {
		_, err := etcdtest.Start(etcdtest.Options{Configure: func(c *embed.Config) { c.ElectionMs = 1 }})
		require.ErrorContains(t, err, "etcdtest: starting the server: ")
	})
}

func TestServersCanBeStartedAndStoppedRepeatedly(t *testing.T) {
	for range 10 {
		server, err := etcdtest.Start(etcdtest.Options{})
		require.NoError(t, err)
		server.Stop()
	}
}
