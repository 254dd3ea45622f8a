package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

func TestRecordingsAreAskedForAndMissingOnesNamed(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{Memory: 1 << 20}})
	defer engine.Close()
	for range 10 {
		guard, err := engine.Entry(t.Context(), "orders")
		require.NoError(t, err)
		guard.Exit()
	}
	client := newRemoteClient(DefaultDial(), tryTimeout)
	defer client.CloseIdleConnections()
	at := func(h http.Handler) instance {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return instance{name: "web-1", base: server.URL + "/", client: client}
	}
	allowed := at(inspect.Handler(engine, inspect.Options{Recordings: true, Name: "someone else"}))
	of, err := allowed.record(t.Context(), maxTryBytes)
	require.NoError(t, err)
	assert.Len(t, of.Calls, 10)
	assert.Equal(t, "web-1", of.Instances[0].Name)

	_, err = at(inspect.Handler(engine, inspect.Options{})).record(t.Context(), maxTryBytes)
	require.ErrorContains(t, err, "inspect.Options", "it is said how to allow it")
	_, err = at(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1000)) })).record(t.Context(), maxTryBytes)
	require.ErrorContains(t, err, "no recording")
	asked := []string{}
	_, err = at(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		_, _ = w.Write(make([]byte, 1000))
	})).record(t.Context(), 999)
	require.ErrorIs(t, err, errTooLarge)
	assert.Equal(t, []string{"last=2m0s", "last=20s", "for=10s"}, asked)
	_, err = instance{problem: "no address"}.record(t.Context(), 1)
	require.ErrorContains(t, err, "no address")
}

func TestOneProcessIsRecordedForATimeIfItRecordsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
		defer engine.Close()
		h := &handler{Options: Options{Engine: engine}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			time.Sleep(time.Second)
			guard, _ := engine.Entry(t.Context(), "orders")
			guard.Exit()
		}()
		of, failed, err := h.record(t.Context())
		<-ended
		require.NoError(t, err)
		assert.Empty(t, failed)
		assert.Len(t, of.Calls, 1)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel) // the page goes
		_, _, err = h.record(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestLatestCallsAreTried(t *testing.T) {
	of := &recording.Recording{Instances: []recording.Instance{{From: 1}}, Calls: make([]recording.Call, maxTryCalls+5)}
	for i := range of.Calls {
		of.Calls[i].At = 10
	}
	of.Calls[5].At = 9
	assert.Len(t, latest(of).Calls, maxTryCalls)
	assert.EqualValues(t, 9, of.Instances[0].From)
	assert.Nil(t, latest(nil))
}

func TestOneDraftIsTriedAtATime(t *testing.T) {
	h := &handler{Options: Options{Store: new(store.Store)}, trying: make(chan struct{}, 1)}
	h.trying <- struct{}{} // somebody else
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/try", strings.NewReader(`{"name":"a.yaml","text":""}`))
	r.Header.Set("Content-Type", "application/json")
	_, err := h.try(request{Request: r})
	require.ErrorAs(t, err, new(errConflict))
	assert.Len(t, h.trying, 1, "which goes on")
}

// An access rule cannot be judged by a hash: it refuses nobody, and the report says so.
func TestAccessRulesAreNotJudgedByHashes(t *testing.T) {
	set, err := rules.Parse("a.yaml", []byte(`access: [{name: no-scrapers, resource: orders, list: scrapers}]`))
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{Memory: 1 << 20}})
	defer engine.Close()
	scrapers, err := list.Parse(t.Context(), strings.NewReader("192.0.2.0/24\n"), list.Options{})
	require.NoError(t, err)
	engine.Lists().Set("scrapers", scrapers)
	require.NoError(t, engine.Load(set))
	for range 10 {
		guard, err := engine.Entry(t.Context(), "orders", core.String("ip", "203.0.113.1"))
		require.NoError(t, err)
		guard.Exit()
	}
	of, err := engine.Recorded(time.Minute)
	require.NoError(t, err)
	h := &handler{kinds: rules.NewTable()}
	lists, notes, err := h.listsFor(t.Context(), of, &set)
	require.NoError(t, err)
	assert.Empty(t, notes)
	report, err := simulate.Replay(t.Context(), of, set, simulate.ReplayOptions{Lists: lists, WarmUp: -1})
	require.NoError(t, err)
	assert.Zero(t, report.Total.Replayed.Refused)
	require.Len(t, report.Unjudged, 1)
	assert.Equal(t, "no-scrapers", report.Unjudged[0].Rule)
	h.Engine, of.Hashed = engine, false
	set, err = rules.Parse("a.yaml", []byte(`access: [{name: a, resource: orders, list: scrapers}, {name: b, resource: orders, list: gone}]`))
	require.NoError(t, err)
	lists, notes, err = h.listsFor(t.Context(), of, &set)
	require.NoError(t, err)
	assert.Equal(t, []string{"scrapers"}, lists.Names())
	assert.Len(t, notes, 1)
}
