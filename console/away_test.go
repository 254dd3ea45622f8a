package console

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

// At night a rule has to be switched off although etcd is away: the instances are those that it had last.
func TestRulesAreSwitchedOffWhileEtcdIsAway(t *testing.T) {
	server, err := etcdtest.Start(etcdtest.Options{})
	require.NoError(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	documents, err := store.New(client, etcd.Prefix("shop"))
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	mux := http.NewServeMux()
	mux.Handle("/", inspect.Handler(engine))
	mux.Handle("/control", inspect.ControlHandler(engine))
	instance := httptest.NewServer(mux)
	defer instance.Close()
	report, err := json.Marshal(etcd.Report{Instance: "a", Inspect: strings.TrimPrefix(instance.URL, "http://")})
	require.NoError(t, err)
	_, err = client.Put(t.Context(), "/penstock/shop.instances/a", string(report))
	require.NoError(t, err)

	o := Options{Store: documents}
	o = o.complete()
	h := &handler{Options: o, kinds: o.table(), fleet: newInstances(&o), topics: newTopics()}
	h.statuses = &statuses{fleet: h.fleet}
	defer h.fleet.remote.CloseIdleConnections()
	var s strip
	require.Eventually(t, func() bool { s = h.strip(t.Context()); return s.Error == "" && s.Instances == 1 }, time.Minute, 50*time.Millisecond)

	server.Stop()
	require.Eventually(t, func() bool { s = h.strip(t.Context()); return s.Error != "" }, time.Minute, 50*time.Millisecond)
	assert.False(t, s.KnownSince.IsZero())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/switch", strings.NewReader(`{"all":true,"state":"off","reason":"wrong"}`))
	r.Header.Set("Content-Type", "application/json")
	done, err := h.switchRules(request{Request: r, who: "alice"})
	require.NoError(t, err)
	assert.Equal(t, switchDone{Done: 1, Total: 1, Failed: []instanceShown{}}, done)
	assert.Len(t, engine.Switches(), 1)
	require.Eventually(t, func() bool { return len(h.strip(t.Context()).Switches) == 1 }, time.Minute, 50*time.Millisecond, "which the page shows")
	_, err = h.fleet.deployment(t.Context())
	require.Error(t, err, "documents are not what they were last")
	require.Eventually(t, func() bool { // what is being asked of etcd ends
		h.fleet.mu.Lock()
		defer h.fleet.mu.Unlock()
		return h.fleet.reading == nil
	}, time.Minute, 50*time.Millisecond)

	// Without having known any, the console says why.
	other := newInstances(&o)
	defer other.remote.CloseIdleConnections()
	_, err = other.list(t.Context())
	require.Error(t, err)
}
