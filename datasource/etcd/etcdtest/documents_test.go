package etcdtest_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// broken are documents that every engine rejects.
var broken = []string{"", "flow: [", "flow: [{resource: orders, limit: -1}]", "flow: [{resource: orders, limt: 1}]", "\xff\xfe"}

func TestBrokenDocumentKeepsItsLastVersionWhileOthersApply(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", broken[0])
	put(t, server, "b", limited("b", 1))
	engine := newEngine(t, server.Endpoint())
	require.Equal(t, map[string]float64{"b": 1}, limits(engine))

	for i := range 3 * len(broken) {
		// The valid documents are applied; the broken one keeps its last version.
		revision := commit(t, server,
			clientv3.OpPut(prefix+"a", broken[i%len(broken)]),
			clientv3.OpPut(prefix+"b", limited("b", i+2)))
		want := map[string]float64{"b": float64(i + 2)}
		if i > 0 {
			want["a"] = float64(i)
		}
		awaitLimits(t, engine, want)
		status := engine.Status().Sources[0]
		require.Error(t, status.Documents[0].Rejected)
		assert.Equal(t, revision, status.Documents[0].RejectedRevision)
		assert.NoError(t, status.Documents[1].Rejected)
		assert.True(t, status.Connected)

		put(t, server, "a", limited("a", i+1))
		want["a"] = float64(i + 1)
		awaitLimits(t, engine, want)
		assert.NoError(t, engine.Status().Sources[0].Documents[0].Rejected)
	}
}

func TestKeysCanBeDeletedAndRecreated(t *testing.T) {
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	put(t, server, "a", limited("a", 1))
	put(t, server, "b", limited("b", 1))
	engine := newEngine(t, network.endpoint())
	for i := range 5 {
		remove(t, server, "a")
		awaitLimits(t, engine, map[string]float64{"b": 1})
		put(t, server, "a", limited("a", i))
		awaitLimits(t, engine, map[string]float64{"a": float64(i), "b": 1})
		network.Cut()
		remove(t, server, "a")
		put(t, server, "a", limited("c", i))
		network.Restore()
		awaitLimits(t, engine, map[string]float64{"c": float64(i), "b": 1})
	}
}

func TestApplicationsWithACommonNamePrefixAreSeparate(t *testing.T) {
	server := start(t, etcdtest.Options{})
	apps := map[string]int{"/penstock/shop/": 1, "/penstock/shop2/": 2, "/penstock/sho/": 3, "/penstock/shop.eu/": 4, "/penstock/shop-2/": 5}
	for key, limit := range apps {
		commit(t, server, clientv3.OpPut(key+"a", limited("a", limit)))
	}
	for _, key := range []string{"/penstock/shop", "/penstock/shopa", "/penstock/shop/", "/penstock/shop0", "/penstock/a"} {
		commit(t, server, clientv3.OpPut(key, limited("stray", 1)))
	}
	for _, given := range []string{"/penstock/shop/", "/penstock/shop", "/penstock/shop2", "/penstock/sho", "/penstock/shop.eu", "/penstock/shop-2/"} {
		source, err := etcd.New(dial(t, server.Endpoint()), given, shortBackoff())
		require.NoError(t, err)
		engine := newEngineOf(t, source)
		ready(t, engine)
		app := source.Name()[len("etcd:"):]
		require.Equal(t, map[string]float64{"a": float64(apps[app])}, limits(engine), given)
		for key := range apps { // including applications that have not written yet
			apps[key] += 10
			commit(t, server, clientv3.OpPut(key+"a", limited("a", apps[key])))
		}
		awaitLimits(t, engine, map[string]float64{"a": float64(apps[app])})
		require.Len(t, engine.Status().Sources[0].Documents, 1)
	}
}

// A restored cluster has lower revisions. Its documents are applied all the same.
func TestEngineAppliesRestoredDocumentsWithOlderRevisions(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	for i := range 20 {
		put(t, server, "a", limited("a", i+1))
	}
	put(t, server, "b", limited("b", 1))
	engine := newEngine(t, server.Endpoint())
	require.Equal(t, map[string]float64{"a": 20, "b": 1}, limits(engine))
	before := engine.Status().Sources[0].Revision

	server.Stop() // removes the data
	require.Eventually(t, func() bool { return !engine.Status().Sources[0].Connected }, eventTimeout, time.Millisecond)
	assert.Equal(t, map[string]float64{"a": 20, "b": 1}, limits(engine))
	require.NoError(t, server.Restart())
	restored := put(t, server, "a", limited("a", 5))
	awaitLimits(t, engine, map[string]float64{"a": 5})
	put(t, server, "a", limited("a", 6))
	awaitLimits(t, engine, map[string]float64{"a": 6})
	assert.Less(t, restored, before)
	assert.Less(t, engine.Status().Sources[0].Revision, before)
}

// A server without space rejects writes and still serves reads and deletions.
func TestServerWithoutSpaceIsStillRead(t *testing.T) {
	server := start(t, etcdtest.Options{Configure: func(c *embed.Config) { c.QuotaBackendBytes = 2 << 20 }})
	put(t, server, "a", limited("a", 1))
	put(t, server, "b", limited("b", 1))
	engine := newEngine(t, server.Endpoint())
	require.Eventually(t, func() bool {
		_, err := server.Client().Put(t.Context(), "/elsewhere", strings.Repeat("x", 1<<19))
		return errors.Is(err, rpctypes.ErrNoSpace)
	}, eventTimeout, time.Millisecond)

	require.Equal(t, map[string]float64{"a": 1, "b": 1}, limits(newEngine(t, server.Endpoint())))
	remove(t, server, "b")
	awaitLimits(t, engine, map[string]float64{"a": 1})
	assert.True(t, engine.Status().Sources[0].Connected)
}

func awaitLimits(t *testing.T, engine *core.Engine, want map[string]float64) {
	t.Helper()
	require.Eventually(t, func() bool { return maps.Equal(want, limits(engine)) }, eventTimeout, time.Millisecond,
		"the engine did not come to %v", want)
}
