package etcdtest_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/datasource/etcd"
)

// open returns a source with a client of its own.
func open(t *testing.T, opts etcd.Options, endpoints ...string) *etcd.Source {
	t.Helper()
	source, err := etcd.Open(clientv3.Config{Endpoints: endpoints}, prefix, opts)
	require.NoError(t, err)
	return source
}

func TestSourceSurvivesFailingMembers(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	others := map[string]string{} // more documents than members
	for i := range 7 {
		others[fmt.Sprintf("document-%d", i)] = "x"
	}
	with := func(value string) map[string]string {
		all := maps.Clone(others)
		all["a"] = value
		return all
	}
	for name, value := range with("0") {
		c.put(t, -1, name, value)
	}

	t.Run("leader is lost", func(t *testing.T) {
		s := follow(t, open(t, shortBackoff(), c.endpoints()...))
		c.put(t, -1, "a", "1")
		s.AwaitDocuments(t, with("1"))
		lost := c.leader(t)
		c[lost].Stop()
		c.put(t, lost, "a", "2")
		s.AwaitDocuments(t, with("2"))
		require.NoError(t, c[lost].Restart())
	})

	// Each member in turn, because the watch is on one of them.
	for i := range c {
		t.Run(fmt.Sprintf("member %d is cut off", i), func(t *testing.T) {
			opts := shortBackoff()
			opts.PageSize = 1 // so that every member is asked for a page
			c.put(t, -1, "a", "before")
			client, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints(), Logger: zap.NewNop()})
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			source, err := etcd.New(client, prefix, opts)
			require.NoError(t, err)
			s := follow(t, source)
			s.AwaitDocuments(t, with("before"))
			c.isolate(i)
			defer c.mend(i)
			c.put(t, i, "a", "after")
			s.AwaitDocuments(t, with("after"))
			assert.Equal(t, []string{"before", "after"}, s.History("a"))
		})
	}

	for name, member := range map[string]func() int{
		"leader": func() int { return c.leader(t) }, "follower": func() int { return (c.leader(t) + 1) % len(c) },
	} {
		t.Run("the only member that is known is cut off, a "+name, func(t *testing.T) {
			only := member()
			c.put(t, only, "a", "before")
			s := follow(t, open(t, shortBackoff(), c[only].Endpoint()))
			s.AwaitDocuments(t, with("before"))

			c.isolate(only)
			c.put(t, only, "a", "after")
			s.AwaitError(t, is(rpctypes.ErrNoLeader))
			assert.Equal(t, []string{"before"}, s.History("a"), "what a member that is cut off still knows is not news")

			c.mend(only)
			s.AwaitDocuments(t, with("after"))
		})
	}

	t.Run("an address leads to a member that is cut off, and from then on to another one", func(t *testing.T) {
		c.put(t, -1, "a", "before")
		network := newProxy(t, c[0])
		s := follow(t, open(t, shortBackoff(), network.endpoint()))
		s.AwaitDocuments(t, with("before"))
		c.isolate(0)
		defer c.mend(0)
		network.leadTo(c[1])
		c.put(t, 0, "a", "after")
		s.AwaitDocuments(t, with("after"))
	})
}
