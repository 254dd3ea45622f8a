package etcdtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.uber.org/zap"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// cluster is an etcd cluster of three members.
type cluster [3]*etcdtest.Server

// startCluster starts a cluster for the test and returns once it has a leader.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	for {
		c, err := tryCluster(t)
		if err == nil {
			t.Cleanup(c.stop)
			return c
		}
		c.stop()
		// Another process may take a port before the member listens on it.
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

// tryCluster starts the members. After an error it returns those that have started.
func tryCluster(t *testing.T) (*cluster, error) {
	t.Helper()
	var peers [len(cluster{})]url.URL
	var initial []string
	for i := range peers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }()
		peers[i] = url.URL{Scheme: "http", Host: listener.Addr().String()}
		initial = append(initial, fmt.Sprintf("member-%d=%s", i, peers[i].String()))
		require.NoError(t, listener.Close())
	}
	var c cluster
	var starting sync.WaitGroup
	var failed [len(cluster{})]error
	for i := range c {
		opts := etcdtest.Options{Dir: t.TempDir(), Configure: func(config *embed.Config) {
			config.Name = fmt.Sprintf("member-%d", i)
			config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers[i]}, []url.URL{peers[i]}
			config.InitialCluster = strings.Join(initial, ",")
			config.TickMs, config.ElectionMs = 20, 200
		}}
		starting.Go(func() {
			c[i], failed[i] = etcdtest.Start(opts)
		})
	}
	starting.Wait()
	return &c, errors.Join(failed[:]...)
}

func (c *cluster) stop() {
	var stopping sync.WaitGroup
	for _, member := range c {
		if member != nil {
			stopping.Go(member.Stop)
		}
	}
	stopping.Wait()
}

func (c *cluster) endpoints() (all []string) {
	for _, member := range c {
		all = append(all, member.Endpoint())
	}
	return all
}

// leader returns the number of the member that leads.
func (c *cluster) leader(t *testing.T) (leader int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, member := range c {
			if etcd := member.Etcd(); etcd != nil && etcd.Server.Leader() == memberID(etcd) {
				leader = i
				return true
			}
		}
		return false
	}, eventTimeout, time.Millisecond)
	return leader
}

// memberID returns the ID of a member, which versions of etcd offer under different
// names.
func memberID(etcd *embed.Etcd) (id types.ID) {
	for _, member := range etcd.Server.Cluster().Members() {
		if member.Name == etcd.Config().Name {
			id = member.ID
		}
	}
	return id
}

// isolate partitions a member from the others.
func (c *cluster) isolate(member int) { c.partition(member, (*etcdserver.EtcdServer).CutPeer) }

// mend ends the partition.
func (c *cluster) mend(member int) { c.partition(member, (*etcdserver.EtcdServer).MendPeer) }

func (c *cluster) partition(member int, do func(*etcdserver.EtcdServer, types.ID)) {
	one := c[member].Etcd()
	for i, other := range c {
		if i != member {
			do(one.Server, memberID(other.Etcd()))
			do(other.Etcd().Server, memberID(one))
		}
	}
}

// put writes a document through the members other than without.
func (c *cluster) put(t *testing.T, without int, name, value string) {
	t.Helper()
	c.commit(t, without, clientv3.OpPut(prefix+name, value))
}

func (c *cluster) commit(t *testing.T, without int, ops ...clientv3.Op) {
	t.Helper()
	var others []string
	for i, member := range c {
		if i != without {
			others = append(others, member.Endpoint())
		}
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: others, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := client.Txn(ctx).Then(ops...).Commit()
		return err == nil
	}, eventTimeout, 10*time.Millisecond)
}
