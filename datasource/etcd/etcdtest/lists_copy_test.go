package etcdtest_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/datasource/lastgood"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/inspect"
)

// denying is an engine of a process that keeps copies of its rules and, unless the directory
// of those is "", of its lists.
type denying struct {
	*core.Engine
	watch *lists.Watch
}

func startDenying(t *testing.T, server *etcdtest.Server, directory, listCopies string) denying {
	t.Helper()
	opts := shortBackoff()
	opts.Logger, opts.Instance = slog.New(slog.DiscardHandler), "i"
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, prefix, opts)
	require.NoError(t, err)
	kept, err := lastgood.Keep(source, lastgood.Options{
		Path: filepath.Join(directory, "rules.copy"), App: "shop", SourceTimeout: eventTimeout, Logger: opts.Logger,
	})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: opts.Logger, MaxRemoval: 0.5})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), kept))
	var options []lists.Option
	if listCopies != "" {
		options = append(options, lists.KeepCopies(listCopies, "shop"))
	}
	watch, err := source.WatchLists(t.Context(), engine.Lists(), options...)
	require.NoError(t, err)
	t.Cleanup(watch.Close)
	return denying{engine, watch}
}

func (d denying) passes(ip string) bool {
	guard, err := d.Entry(context.Background(), "orders", core.String("ip", ip))
	if err == nil {
		guard.Exit()
	}
	return err == nil
}

func (d denying) stop() {
	d.watch.Close()
	d.Close()
}

// isReady asks as a probe does.
func (d denying) isReady() bool {
	answer := httptest.NewRecorder()
	inspect.Handler(d.Engine, inspect.Options{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/ready", http.NoBody))
	return answer.Code == http.StatusOK
}

const deniesScrapers = `access: [{name: no-scrapers, match: "*", list: scrapers}]`

func TestDeniedAddressIsRefusedAfterARestartWhileEtcdIsDown(t *testing.T) {
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	put(t, server, "rules.yaml", deniesScrapers)
	pushList(t, newStore(t, server), "scrapers", "192.0.2.1\n198.51.100.0/24\n")
	directory := t.TempDir()
	copies := filepath.Join(directory, "lists")
	first := startDenying(t, server, directory, copies)
	require.Eventually(t, first.isReady, eventTimeout, eventTimeout/1000)
	require.False(t, first.passes("192.0.2.1"))
	first.stop()
	server.Stop()

	second := startDenying(t, server, directory, copies)
	require.Eventually(t, second.isReady, eventTimeout, eventTimeout/1000)
	assert.False(t, second.passes("192.0.2.1"))
	assert.True(t, second.passes("192.0.2.2"))
	assert.NotZero(t, second.Lists().Status()[0].CopiedAt, "the list is of the copy")
	second.stop()

	without := startDenying(t, server, directory, "")
	require.Eventually(t, func() bool { return len(without.Status().MissingLists) == 1 }, eventTimeout, eventTimeout/1000)
	assert.False(t, without.isReady(), "without a copy of the list it takes no calls")
	without.stop()
}

func TestEmptiedOrDeletedListIsHeldBackUntilConfirmed(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	put(t, server, "rules.yaml", deniesScrapers)
	pushList(t, s, "scrapers", "192.0.2.1\n198.51.100.0/24\n")
	d := startDenying(t, server, t.TempDir(), filepath.Join(t.TempDir(), "lists"))
	require.Eventually(t, d.isReady, eventTimeout, eventTimeout/1000)
	heldBack := func() bool {
		status := d.Lists().Status()
		return len(status) == 1 && status[0].HeldBack != nil
	}
	restore := func() {
		pushList(t, s, "scrapers", "192.0.2.1\n198.51.100.0/24\n")
		require.Eventually(t, func() bool { return !heldBack() && !d.passes("192.0.2.1") }, eventTimeout, eventTimeout/1000)
	}

	pushList(t, s, "scrapers", "# none\n")
	require.Eventually(t, heldBack, eventTimeout, eventTimeout/1000)
	require.False(t, d.passes("192.0.2.1"))
	require.Eventually(t, func() bool {
		reports, err := s.Reports(t.Context())
		return err == nil && len(reports.Instances) == 1 && len(reports.Instances[0].ListsHeldBack) == 1
	}, eventTimeout, eventTimeout/1000)
	_, err := s.ConfirmLists(t.Context(), "alice")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.passes("192.0.2.1") }, eventTimeout, eventTimeout/1000)

	restore()
	_, err = s.DeleteList(t.Context(), "scrapers", 0)
	require.NoError(t, err)
	require.Eventually(t, heldBack, eventTimeout, eventTimeout/1000)
	require.False(t, d.passes("192.0.2.1"), "what was confirmed before is not confirmed again")
	found, err := s.Lists(t.Context())
	require.NoError(t, err)
	assert.Empty(t, found, "a confirmation is no list")

	restore()
	for range 2 { // a push of the same text confirms what is held back
		pushList(t, s, "scrapers", "# none\n")
	}
	require.Eventually(t, heldBack, eventTimeout, eventTimeout/1000)
	_, err = s.PushList(t.Context(), store.ListPush{Name: "scrapers", Text: strings.NewReader("# none\n"), ConfirmRemoval: true})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.passes("192.0.2.1") }, eventTimeout, eventTimeout/1000)
}
