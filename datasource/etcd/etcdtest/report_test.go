package etcdtest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

const (
	instances      = "/penstock/shop.instances/"
	reportInterval = 5 * time.Second
)

// reporting returns options with an instance name.
func reporting(name string) etcd.Options {
	opts := shortBackoff()
	opts.Instance = name
	return opts
}

// reported returns the report of an instance and its lease; false if there is none, or none that can be read now.
func reported(t *testing.T, client *clientv3.Client, name string) (report etcd.Report, lease clientv3.LeaseID, there bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	found, err := client.Get(ctx, instances+name)
	if err != nil {
		t.Log(err)
		return etcd.Report{}, 0, false
	}
	if len(found.Kvs) == 0 {
		return etcd.Report{}, 0, false
	}
	return report, clientv3.LeaseID(found.Kvs[0].Lease), assert.NoError(t, json.Unmarshal(found.Kvs[0].Value, &report))
}

// awaitReport waits for a report for which wanted returns true, and returns it.
func awaitReport(t *testing.T, client *clientv3.Client, name string, wanted func(etcd.Report) bool) (report etcd.Report) {
	t.Helper()
	require.Eventually(t, func() (there bool) {
		report, _, there = reported(t, client, name)
		return there && wanted(report)
	}, eventTimeout, 5*time.Millisecond)
	return report
}

func anyReport(etcd.Report) bool { return true }

// since matches reports of the revision or a later one: a complete read reports the
// revision at which it was made.
func since(revision int64) func(etcd.Report) bool {
	return func(r etcd.Report) bool { return r.Revision >= revision }
}

// report follows the source with an engine until the test ends or the function
// returned is called.
func report(t *testing.T, source core.Source) (engine *core.Engine, stop func()) {
	t.Helper()
	engine = newEngineOf(t, source)
	return engine, engine.Close
}

func TestInstanceReportsItsRulesInForce(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, endpoint string) *etcd.Source{
		"with the caller's client": func(t *testing.T, endpoint string) *etcd.Source {
			return newSource(t, endpoint, reporting("shop-1"))
		},
		"with its own": func(t *testing.T, endpoint string) *etcd.Source {
			source, err := etcd.Open(clientv3.Config{Endpoints: []string{endpoint}}, prefix, reporting("shop-1"))
			require.NoError(t, err)
			return source
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			began := time.Now().Add(-time.Minute)
			_, stop := report(t, open(t, server.Endpoint()))

			first := put(t, server, "orders.yaml", closed)
			got := awaitReport(t, server.Client(), "shop-1", since(first))
			host, err := os.Hostname()
			require.NoError(t, err)
			assert.True(t, got.Started.After(began) && !got.ReportedAt.Before(got.Started), "%v", got)
			want := etcd.Report{
				Instance: "shop-1", Host: host, PID: os.Getpid(), Started: got.Started, ReportedAt: got.ReportedAt,
				Version: got.Version, Program: got.Program, // what the test was built of
				Revision: got.Revision, Rules: 1, Documents: 1,
				Held: []etcd.DocumentRevision{{Name: "orders.yaml", Revision: first}},
			}
			want.Digest, want.Unmatched = etcd.DigestOf(want.Held), got.Unmatched
			require.Len(t, got.Unmatched, 1)
			assert.Equal(t, "orders.yaml", got.Unmatched[0].Document)
			assert.Equal(t, want, got)

			second := put(t, server, "faulty.yaml", "flow: [")
			got = awaitReport(t, server.Client(), "shop-1", since(second))
			assert.Equal(t, 1, got.Rules)
			assert.Equal(t, 2, got.Documents)
			require.Len(t, got.Rejected, 1)
			assert.Equal(t, "faulty.yaml", got.Rejected[0].Document)
			assert.Equal(t, second, got.Rejected[0].Revision)
			assert.NotEmpty(t, got.Rejected[0].Error)

			third := commit(t, server, clientv3.OpDelete(prefix+"faulty.yaml"))
			got = awaitReport(t, server.Client(), "shop-1", since(third))
			assert.Empty(t, got.Rejected)

			stop()
			_, _, there := reported(t, server.Client(), "shop-1")
			assert.False(t, there, "it is gone when the run has ended")
			leases, err := server.Client().Leases(t.Context())
			require.NoError(t, err)
			assert.Empty(t, leases.Leases)
		})
	}
}

func TestReportsAreAttachedToALease(t *testing.T) {
	server := start(t, etcdtest.Options{})
	report(t, newSource(t, server.Endpoint(), reporting("a")))
	awaitReport(t, server.Client(), "a", anyReport)
	_, lease, _ := reported(t, server.Client(), "a")
	granted, err := server.Client().TimeToLive(t.Context(), lease)
	require.NoError(t, err)
	assert.Equal(t, int64(15), granted.GrantedTTL)
}

func TestSourceWithoutInstanceNameReportsNothing(t *testing.T) {
	server := start(t, etcdtest.Options{})
	follow(t, newSource(t, server.Endpoint(), shortBackoff())).AwaitDocuments(t, map[string]string{})
	follow(t, newSource(t, server.Endpoint(), reporting("a"))).AwaitDocuments(t, map[string]string{})
	awaitReport(t, server.Client(), "a", anyReport)
	found, err := server.Client().Get(t.Context(), instances, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	assert.Equal(t, int64(1), found.Count)
}

func TestLostReportIsWrittenAgain(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, server *etcdtest.Server, lease clientv3.LeaseID){
		"with its lease": func(t *testing.T, server *etcdtest.Server, lease clientv3.LeaseID) {
			_, err := server.Client().Revoke(t.Context(), lease)
			require.NoError(t, err)
		},
		"by itself": func(t *testing.T, server *etcdtest.Server, _ clientv3.LeaseID) {
			commit(t, server, clientv3.OpDelete(instances+"a"))
		},
		"with the cluster": func(t *testing.T, server *etcdtest.Server, _ clientv3.LeaseID) {
			server.Stop() // removes the data
			require.NoError(t, server.Restart())
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			virtual := clock.NewVirtual(time.Now())
			opts := reporting("a")
			opts.Clock = virtual
			put(t, server, "orders.yaml", closed)
			report(t, newSource(t, server.Endpoint(), opts))
			want := awaitReport(t, server.Client(), "a", func(r etcd.Report) bool { return r.Rules == 1 })

			_, lease, _ := reported(t, server.Client(), "a")
			lose(t, server, lease)
			var got etcd.Report
			require.Eventually(t, func() (there bool) {
				got, _, there = reported(t, server.Client(), "a")
				if !there {
					virtual.Advance(reportInterval)
				}
				return there
			}, eventTimeout, 100*time.Millisecond)
			assert.True(t, want.Started.Equal(got.Started))
		})
	}
}

func TestReportsSurviveARestartOfTheServer(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	report(t, newSource(t, server.Endpoint(), reporting("a")))
	awaitReport(t, server.Client(), "a", anyReport)

	require.NoError(t, server.Restart())
	awaitReport(t, server.Client(), "a", since(put(t, server, "orders.yaml", closed)))
}

func TestLeaseIsRenewedAsLongAsTheRunLasts(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	virtual := clock.NewVirtual(time.Now())
	opts := reporting("a")
	opts.Clock = virtual
	report(t, newSource(t, server.Endpoint(), opts))
	awaitReport(t, server.Client(), "a", anyReport)
	_, lease, _ := reported(t, server.Client(), "a")
	left := func() (seconds int64, known bool) {
		response, err := server.Client().TimeToLive(t.Context(), lease)
		if err != nil {
			return 0, false
		}
		return response.TTL, true
	}
	require.Eventually(t, func() bool {
		seconds, known := left()
		return known && seconds < 14
	}, eventTimeout, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		virtual.Advance(reportInterval)
		seconds, known := left()
		return known && seconds >= 14
	}, eventTimeout, 100*time.Millisecond)
}

// A change of another source may change which rules of this one are in force.
func TestStatusChangedByAnotherSourceIsReported(t *testing.T) {
	server := start(t, etcdtest.Options{})
	virtual := clock.NewVirtual(time.Now())
	opts := reporting("a")
	opts.Clock = virtual
	s := &instance{}
	s.limit.Store(1)
	run(t, newSource(t, server.Endpoint(), opts), s)
	put(t, server, "a", "1")
	awaitReport(t, server.Client(), "a", since(1))
	s.limit.Store(2)
	require.Eventually(t, func() bool {
		virtual.Advance(reportInterval)
		got, _, _ := reported(t, server.Client(), "a")
		return got.Revision == 2
	}, eventTimeout, 100*time.Millisecond)
}

func TestChangedListIsReportedAtOnce(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	pushList(t, s, "scrapers", "192.0.2.1\n")
	opts := reporting("i")
	opts.Clock = clock.NewVirtual(time.Now()) // which stands still: nothing is looked at again
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, prefix, opts)
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), MaxRemoval: 0.5})
	t.Cleanup(engine.Close)
	watch, err := source.WatchLists(t.Context(), engine.Lists())
	require.NoError(t, err)
	t.Cleanup(watch.Close)
	require.NoError(t, watch.Ready(t.Context()))
	require.NoError(t, engine.Follow(t.Context(), source))
	first := awaitReport(t, server.Client(), "i", func(r etcd.Report) bool { return len(r.Lists) == 1 })

	pushList(t, s, "scrapers", "192.0.2.1\n192.0.2.2\n")
	second := awaitReport(t, server.Client(), "i", func(r etcd.Report) bool { return r.ListsDigest != first.ListsDigest })
	assert.Empty(t, second.ListsHeldBack)
	pushList(t, s, "scrapers", "# none\n")
	awaitReport(t, server.Client(), "i", func(r etcd.Report) bool { return len(r.ListsHeldBack) == 1 })
}

func TestHangingReportsDoNotDelayTheDocuments(t *testing.T) {
	server := start(t, etcdtest.Options{})
	release := make(chan struct{})
	var held atomic.Int64
	hang := onRequest(func(request any) {
		if _, ok := request.(*pb.PutRequest); ok {
			held.Add(1)
			<-release
		}
	})
	s := follow(t, newSource(t, server.Endpoint(), reporting("a"), hang))
	require.Eventually(t, func() bool { return held.Load() == 1 }, eventTimeout, time.Millisecond)
	for _, text := range []string{"1", "2", "3"} {
		put(t, server, "a", text)
		s.AwaitDocuments(t, map[string]string{"a": text})
	}
	assert.Empty(t, s.Errors())
	close(release)
	awaitReport(t, server.Client(), "a", anyReport)
}

func TestRunEndsAtOnceWhenItsReportCannotBeRemoved(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	_, stop := report(t, newSource(t, network.endpoint(), reporting("a")))
	awaitReport(t, server.Client(), "a", anyReport)
	network.Stall()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	select {
	case <-stopped:
	case <-time.After(eventTimeout):
		assert.Fail(t, "the run does not end while the network is stalled")
	}
	network.Restore()
	<-stopped
}

func TestMissingReportPermissionIsLoggedOnce(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	_, err := root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	log := new(records)
	virtual := clock.NewVirtual(time.Now())
	opts := reporting("a")
	opts.Logger, opts.Clock = slog.New(slog.NewTextHandler(log, nil)), virtual
	source, err := etcd.Open(clientv3.Config{
		Endpoints: []string{server.Endpoint()}, Username: "reader", Password: "reader",
	}, prefix, opts)
	require.NoError(t, err)

	t.Run("following", func(t *testing.T) {
		s := follow(t, source)
		s.AwaitDocuments(t, map[string]string{})
		for _, text := range []string{"1", "2", "3"} { // each causes an attempt
			_, err = root.Put(t.Context(), prefix+"a", text)
			require.NoError(t, err)
			s.AwaitDocuments(t, map[string]string{"a": text})
		}
		assert.Empty(t, s.Errors())
		require.Eventually(t, func() bool { return log.String() != "" }, eventTimeout, time.Millisecond)
		_, err = root.RoleGrantPermission(t.Context(), "rules", instances,
			clientv3.GetPrefixRangeEnd(instances), clientv3.PermissionType(clientv3.PermReadWrite))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			virtual.Advance(reportInterval)
			_, _, there := reported(t, root, "a")
			return there
		}, eventTimeout, 100*time.Millisecond)
	})
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "this instance cannot report to etcd")
	assert.Contains(t, log.String(), "permission denied")
	require.Eventually(t, func() bool { // at once, unless the machine is too busy: then with the lease
		_, _, there := reported(t, root, "a")
		return !there
	}, eventTimeout, 10*time.Millisecond)
}
