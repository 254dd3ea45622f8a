package etcdtest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// secured starts a server with authentication and returns a client of the user
// root. The user "reader" has a password and no permissions.
func secured(t *testing.T, opts etcdtest.Options) (*etcdtest.Server, *clientv3.Client) {
	t.Helper()
	configure := opts.Configure
	opts.Configure = func(c *embed.Config) {
		c.BcryptCost = 4 // the least
		if configure != nil {
			configure(c)
		}
	}
	server := start(t, opts)
	client := server.Client()
	for user, password := range map[string]string{"root": "root", "reader": "reader"} {
		_, err := client.UserAdd(t.Context(), user, password)
		require.NoError(t, err)
	}
	_, err := client.UserGrantRole(t.Context(), "root", "root")
	require.NoError(t, err)
	_, err = client.RoleAdd(t.Context(), "rules")
	require.NoError(t, err)
	_, err = client.RoleGrantPermission(t.Context(), "rules", prefix,
		clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermRead))
	require.NoError(t, err)
	_, err = client.AuthEnable(t.Context())
	require.NoError(t, err)

	root, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.Endpoint()}, Username: "root", Password: "root", Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{neverDenied()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return server, root
}

// reader returns a source that logs in as the user "reader".
func reader(t *testing.T, endpoint, password string) core.Source {
	t.Helper()
	source, err := etcd.Open(clientv3.Config{
		Endpoints: []string{endpoint}, Username: "reader", Password: password,
	}, prefix, shortBackoff())
	require.NoError(t, err)
	return source
}

func TestSourceConnectsOnceAMissingPermissionIsGranted(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	s := follow(t, reader(t, server.Endpoint(), "reader"))
	s.AwaitError(t, is(rpctypes.ErrPermissionDenied))
	assert.Empty(t, s.Changes())

	_, err = root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	_, err = root.Put(t.Context(), prefix+"a", "2")
	require.NoError(t, err)
	s.AwaitDocuments(t, map[string]string{"a": "2"})
}

// etcd checks the permission when a watch begins, and not again.
func TestRevokedPermissionDoesNotEndTheWatch(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	s := follow(t, reader(t, server.Endpoint(), "reader"))
	s.AwaitDocuments(t, map[string]string{})

	_, err = root.UserRevokeRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	_, err = root.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	assert.Empty(t, s.Errors())

	require.NoError(t, server.Restart())
	s.AwaitError(t, is(rpctypes.ErrPermissionDenied))
	assert.Equal(t, map[string]string{"a": "1"}, s.Documents())
}

func TestSourceConnectsOnceThePasswordIsCorrected(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	s := follow(t, reader(t, server.Endpoint(), "the new one"))
	s.AwaitError(t, is(rpctypes.ErrAuthFailed))

	// Of two logins at the same time, etcd now and then refuses the one that is in order.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := root.UserChangePassword(t.Context(), "reader", "the new one")
		assert.NoError(c, err)
	}, 2*time.Minute, 10*time.Millisecond)
	s.AwaitDocuments(t, map[string]string{})
}

func TestMissingLoginIsReported(t *testing.T) {
	server, _ := secured(t, etcdtest.Options{})
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitError(t, is(rpctypes.ErrUserEmpty))
}

// The server's tokens become invalid when it restarts and when they expire.
func TestSourceLogsInAgainAfterItsTokenExpires(t *testing.T) {
	t.Parallel()
	server, root := secured(t, etcdtest.Options{
		Dir:       t.TempDir(),
		Configure: func(c *embed.Config) { c.AuthTokenTTL = 1 },
	})
	_, err := root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	network := newProxy(t, server)
	s := follow(t, reader(t, network.endpoint(), "reader"))
	s.AwaitDocuments(t, map[string]string{})

	t.Run("after a restart", func(t *testing.T) {
		require.NoError(t, server.Restart())
		_, err := root.Put(t.Context(), prefix+"a", "1")
		require.NoError(t, err)
		s.AwaitDocuments(t, map[string]string{"a": "1"})
	})

	t.Run("after its time", func(t *testing.T) {
		// Using a token extends its life. The checks of this one, which is at most
		// as old as that of the source, are further apart than its lifetime.
		token := tokenOf(t, server)
		require.Eventually(t, func() bool { return !valid(server, token) }, eventTimeout, 2500*time.Millisecond)
		network.Cut()
		_, err := root.Put(t.Context(), prefix+"a", "2")
		require.NoError(t, err)
		network.Restore()
		s.AwaitDocuments(t, map[string]string{"a": "2"})
	})
}

// A token that another program renews is read for each request.
func TestTokenInAFileIsRenewed(t *testing.T) {
	t.Parallel()
	server, root := secured(t, etcdtest.Options{Dir: t.TempDir()})
	_, err := root.RoleGrantPermission(t.Context(), "rules", instances,
		clientv3.GetPrefixRangeEnd(instances), clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "token")
	opts := reporting("a")
	opts.Token = etcd.TokenFile(file)
	s := follow(t, open(t, opts, server.Endpoint()))
	s.AwaitError(t, says("no such file"))
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	s.AwaitError(t, says("is empty"))
	require.NoError(t, os.WriteFile(file, []byte("some.1"), 0o600))
	s.AwaitError(t, is(rpctypes.ErrInvalidAuthToken))
	assert.Empty(t, s.Changes())
	require.NoError(t, os.WriteFile(file, []byte(tokenOf(t, server)+"\n"), 0o600))
	s.AwaitDocuments(t, map[string]string{})
	awaitReport(t, root, "a", anyReport)

	before := len(s.Errors())
	require.NoError(t, server.Restart()) // invalidates its tokens
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(s.Errors()[before:], is(rpctypes.ErrInvalidAuthToken))
	}, eventTimeout, time.Millisecond)
	require.NoError(t, os.WriteFile(file, []byte(tokenOf(t, server)), 0o600))
	_, err = root.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	s.AwaitDocuments(t, map[string]string{"a": "1"})
}

// tokenOf logs in as the reader and returns the token.
func tokenOf(t *testing.T, server *etcdtest.Server) string {
	t.Helper()
	response, err := server.Client().Authenticate(t.Context(), "reader", "reader")
	require.NoError(t, err)
	return response.Token
}

func valid(server *etcdtest.Server, token string) bool {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		return false
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	_, err = client.Get(metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token), prefix)
	return err == nil
}

// The server may refuse a probe on an open watch. The refusal shows that it is alive.
func TestRefusedProbeCountsAsAnswer(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	virtual := clock.NewVirtual(time.Now())
	opts := shortBackoff()
	opts.Clock = virtual
	var refused atomic.Int64
	source, err := etcd.Open(clientv3.Config{
		Endpoints: []string{server.Endpoint()}, Username: "reader", Password: "reader",
		DialOptions: []grpc.DialOption{onResponse(func(r *pb.WatchResponse) {
			if r.Created && r.Canceled {
				refused.Add(1)
			}
		})},
	}, prefix, opts)
	require.NoError(t, err)
	s := follow(t, source)
	s.AwaitDocuments(t, map[string]string{})
	_, err = root.UserRevokeRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	for n := range int64(10) {
		require.Eventually(t, func() bool {
			if refused.Load() > n {
				return true
			}
			if virtual.Timers() == 2 {
				virtual.Advance(10 * time.Second) // a third of the watch's timeout
			}
			return false
		}, eventTimeout, 10*time.Millisecond)
	}
	_, err = root.Put(t.Context(), prefix+"a", "1")
	require.NoError(t, err)
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	assert.Empty(t, s.Errors())
}
