package etcdtest_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func says(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func anyError(error) bool { return true }

func TestSourceConnectsToAServerThatStartsLater(t *testing.T) {
	server := start(t, etcdtest.Options{})
	server.Stop()
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitError(t, says("connection refused"))
	assert.Empty(t, s.Changes())

	require.NoError(t, server.Restart())
	s.AwaitDocuments(t, map[string]string{})
	put(t, server, "a", "1")
	s.AwaitDocuments(t, map[string]string{"a": "1"})
}

func TestSourceReconnectsAfterAServerRestart(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	put(t, server, "a", "1")
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{"a": "1"})

	server.Stop()
	s.AwaitError(t, anyError)
	require.Len(t, s.Changes(), 1, "a lost connection changes no document")

	require.NoError(t, server.Restart())
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	put(t, server, "a", "2")
	s.AwaitDocuments(t, map[string]string{"a": "2"})
}

// A cluster that comes back empty, or from a backup, starts at a lower revision. A
// watch that resumes at the next revision would miss what was written before the
// source reconnected, and all deletions.
func TestDocumentsOfARestoredClusterAreRead(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]int{"at a lower revision": 0, "at a higher revision": 20} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			network := newProxy(t, server)
			put(t, server, "gone", "1")
			put(t, server, "a", "1")
			put(t, server, "a", "2")
			s := follow(t, newSource(t, network.endpoint(), shortBackoff()))
			s.AwaitDocuments(t, map[string]string{"gone": "1", "a": "2"})

			network.Cut()
			server.Stop() // removes the data
			require.NoError(t, server.Restart())
			put(t, server, "a", "3")
			for range writes {
				put(t, server, "b", "1")
				remove(t, server, "b")
			}
			network.Restore()

			s.AwaitDocuments(t, map[string]string{"a": "3"})
			put(t, server, "a", "4")
			s.AwaitDocuments(t, map[string]string{"a": "4"})
		})
	}
}

// The revision of the first page exists in the other cluster too, with other
// documents.
func TestClusterReplacedBetweenTwoPagesIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(config *embed.Config){
		"by another":         func(config *embed.Config) { config.InitialClusterToken = "another" },
		"by its former self": func(*embed.Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			replaced := false
			server := start(t, etcdtest.Options{Configure: func(config *embed.Config) {
				if replaced {
					replace(config)
				}
			}})
			require.NoError(t, server.Restart()) // each restart begins a later term
			require.NoError(t, server.Restart())
			put(t, server, "a", "1")
			put(t, server, "b", "1")
			opts := shortBackoff()
			opts.PageSize = 1
			var client *clientv3.Client
			client = dial(t, server.Endpoint(), afterRange(1, func() {
				replaced = true
				server.Stop() // removes the data
				assert.NoError(t, server.Restart())
				put(t, server, "b", "2")
				put(t, server, "a", "2")
				put(t, server, "c", "2")
				_, err := client.Get(t.Context(), prefix) // waits for the connection
				assert.NoError(t, err)
			}))
			source, err := etcd.New(client, prefix, opts)
			require.NoError(t, err)
			s := follow(t, source)
			s.AwaitDocuments(t, map[string]string{"a": "2", "b": "2", "c": "2"})
			assert.Len(t, s.Changes(), 1)
			require.Len(t, s.Errors(), 1)
			assert.ErrorContains(t, s.Errors()[0], "restored or replaced")
		})
	}
}

func TestOnlyARestoredClusterIsLogged(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "secret")
	put(t, server, "a", "secret")
	var log strings.Builder // read only after the source has ended
	opts := shortBackoff()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	source := newSource(t, server.Endpoint(), opts)

	t.Run("following", func(t *testing.T) {
		s := follow(t, source)
		s.AwaitDocuments(t, map[string]string{"a": "secret"})
		server.Stop() // removes the data
		s.AwaitError(t, anyError)
		require.NoError(t, server.Restart())
		s.AwaitDocuments(t, map[string]string{})
		put(t, server, "a", "secret")
		s.AwaitDocuments(t, map[string]string{"a": "secret"})
	})
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "restored or replaced")
	assert.NotContains(t, log.String(), "secret")
}

func TestSourceReconnectsAfterTheConnectionIsCut(t *testing.T) {
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	put(t, server, "a", "1")
	put(t, server, "b", "1")
	s := follow(t, newSource(t, network.endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{"a": "1", "b": "1"})

	network.Cut()
	s.AwaitError(t, anyError)
	put(t, server, "a", "2")
	remove(t, server, "b")
	network.Restore()
	s.AwaitDocuments(t, map[string]string{"a": "2"})
}

func TestChangesCompactedWhileDisconnectedAreRead(t *testing.T) {
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	put(t, server, "a", "1")
	put(t, server, "b", "1")
	s := follow(t, newSource(t, network.endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{"a": "1", "b": "1"})

	network.Cut()
	s.AwaitError(t, anyError)
	remove(t, server, "b")
	put(t, server, "a", "2")
	compact(t, server, put(t, server, "c", "1"))
	network.Restore()
	s.AwaitDocuments(t, map[string]string{"a": "2", "c": "1"})
}

func TestCompactionBetweenTwoPagesIsFollowedByACompleteRead(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	put(t, server, "b", "1")
	opts := shortBackoff()
	opts.PageSize = 1
	s := follow(t, newSource(t, server.Endpoint(), opts, afterRange(1, func() {
		remove(t, server, "a")
		compact(t, server, put(t, server, "b", "2"))
	})))
	s.AwaitDocuments(t, map[string]string{"b": "2"})
	require.Len(t, s.Errors(), 1)
	require.ErrorIs(t, s.Errors()[0], rpctypes.ErrCompacted)
	changes := s.Changes()
	assert.True(t, changes[len(changes)-1].Complete)
}

// The watch is open before anything is read, so it needs no compacted revisions.
func TestCompactionDuringTheReadIsNotAnError(t *testing.T) {
	for name, where := range map[string]func(do func()) grpc.DialOption{
		"before the watch":    func(do func()) grpc.DialOption { return beforeWatch(1, do) },
		"after the last page": func(do func()) grpc.DialOption { return afterRange(2, do) },
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			put(t, server, "a", "1")
			put(t, server, "b", "1")
			opts := shortBackoff()
			opts.PageSize = 1
			s := follow(t, newSource(t, server.Endpoint(), opts, where(func() {
				remove(t, server, "a")
				compact(t, server, put(t, server, "b", "2"))
			})))
			s.AwaitDocuments(t, map[string]string{"b": "2"})
			assert.Empty(t, s.Errors())
		})
	}
}

func TestStalledConnectionIsReported(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	put(t, server, "a", "1")
	opts := shortBackoff()
	opts.WatchTimeout, opts.RequestTimeout = 300*time.Millisecond, 300*time.Millisecond
	s := follow(t, newSource(t, network.endpoint(), opts))
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	put(t, server, "a", "2")
	s.AwaitDocuments(t, map[string]string{"a": "2"}) // the watch works

	network.Stall()
	s.AwaitError(t, says("silent for 300ms"))
	s.AwaitError(t, says("no answer within 300ms"))
	put(t, server, "a", "3")
	network.Restore()
	s.AwaitDocuments(t, map[string]string{"a": "3"})
}

func TestUnconfirmedWatchTimesOut(t *testing.T) {
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	opts := shortBackoff()
	opts.RequestTimeout = 300 * time.Millisecond
	s := follow(t, newSource(t, network.endpoint(), opts, beforeWatch(1, network.Stall)))
	s.AwaitError(t, says("no answer within 300ms"))
	network.Restore()
	s.AwaitDocuments(t, map[string]string{})
}

func TestIdleWatchStaysConnected(t *testing.T) {
	server := start(t, etcdtest.Options{})
	idle(t, server, server.Endpoint())
}

// idle advances the clock over a watch without events.
func idle(t *testing.T, server *etcdtest.Server, endpoint string) {
	t.Helper()
	put(t, server, "a", "1")
	virtual := clock.NewVirtual(time.Now())
	opts := shortBackoff()
	opts.Clock = virtual
	var probes, answers atomic.Int64
	count := onWatchRequest(func(r *pb.WatchRequest) {
		if r.GetCreateRequest().GetWatchId() > 0 {
			probes.Add(1)
		}
	})
	s := follow(t, newSource(t, endpoint, opts, count, onResponse(func(r *pb.WatchResponse) {
		if r.Created && r.WatchId > 0 {
			answers.Add(1)
		}
	})))
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	pass := func() {
		for asked := range 12 {
			before := answers.Load()
			require.Eventually(t, func() bool {
				if answers.Load() > before {
					return true
				}
				// The source may reset its timer for the previous answer just as
				// it fires for this one. The server may take its time for an answer.
				if probes.Load() == before && virtual.Timers() == 2 { // that timer and the one of the comparison
					virtual.Advance(10 * time.Second) // a third of the watch's timeout
				}
				return false
			}, eventTimeout, 10*time.Millisecond, "answer %d", asked)
		}
	}
	pass() // nothing has been written since the watch was opened
	_, err := server.Client().Put(t.Context(), "/elsewhere", "")
	require.NoError(t, err)
	pass()
	put(t, server, "a", "2")
	s.AwaitDocuments(t, map[string]string{"a": "2"})
	assert.Empty(t, s.Errors())
	assert.Len(t, s.Changes(), 2, "what is read again is not applied again")
}

// With the connection's own backoff the pauses would grow to minutes.
func TestEveryAttemptDials(t *testing.T) {
	server := start(t, etcdtest.Options{})
	server.Stop()
	var dials atomic.Int64
	counting := grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	})
	opts := shortBackoff()
	opts.MaxBackoff, opts.RequestTimeout = time.Millisecond, 20*time.Millisecond
	s := follow(t, newSource(t, server.Endpoint(), opts, counting))
	// With its own backoff it would dial less than ten times within the timeout.
	require.Eventually(t, func() bool { return dials.Load() >= 20 }, eventTimeout, time.Millisecond)
	assert.GreaterOrEqual(t, len(s.Errors()), 10)
}
