package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

// At night a rule has to be switched off although etcd is away: the instances are those that it had last.
func TestRulesAreSwitchedOffWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	server, err := etcdtest.Start(etcdtest.Options{})
	require.NoError(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	documents, err := store.New(client, etcd.Prefix("shop"))
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	report(t, client, engine)
	page := httptest.NewServer(console.Handler(console.Options{
		Store:     documents,
		Authorize: func(*http.Request) (console.Identity, console.Role) { return "alice", console.Operator },
	}))
	defer func() { page.CloseClientConnections(); page.Close() }()
	shown := watch(t, page.URL+"/api/live?screen=overview")
	for s := range shown {
		if s.Error == "" && s.Instances == 1 {
			break
		}
	}

	server.Stop()
	for s := range shown {
		if s.Error != "" {
			assert.Equal(t, 1, s.Instances)
			assert.NotEmpty(t, s.KnownSince)
			break
		}
	}
	for screen, text := range map[string]string{"rules": `"away":true`, "history": `"pushes":null`} {
		awaitText(t, page.URL+"/api/live?screen="+screen, text)
	}
	answer, err := http.Post(page.URL+"/api/switch", "application/json", strings.NewReader(`{"all":true,"state":"off","reason":"wrong"}`))
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var done struct{ Done, Total int }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&done))
	assert.Equal(t, struct{ Done, Total int }{1, 1}, done)
	assert.Len(t, engine.Status().Switches, 1)
}

// awaitText reads what the page is told of a screen until it has a text.
func awaitText(t *testing.T, address, text string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	require.Fail(t, "it was not told", "%s: %v", text, lines.Err())
}

// report serves inspect and control of the engine, and reports its address as an instance does.
func report(t *testing.T, client *clientv3.Client, engine *core.Engine) {
	mux := http.NewServeMux()
	mux.Handle("/", inspect.Handler(engine, inspect.Options{}))
	mux.Handle("/control", inspect.ControlHandler(engine, inspect.Options{}))
	instance := httptest.NewServer(mux)
	t.Cleanup(instance.Close)
	text, err := json.Marshal(etcd.Report{Instance: "a", Inspect: strings.TrimPrefix(instance.URL, "http://")})
	require.NoError(t, err)
	_, err = client.Put(t.Context(), "/penstock/shop.instances/a", string(text))
	require.NoError(t, err)
}

// strip is what the page shows of all instances together.
type strip struct {
	Instances         int
	Error, KnownSince string
}

// watch follows a screen as the page does. The channel is closed when the stream ends.
func watch(t *testing.T, address string) <-chan strip {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	require.Equal(t, http.StatusOK, answer.StatusCode)
	shown := make(chan strip)
	go func() {
		defer close(shown)
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event struct {
				Data struct{ Strip strip }
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok || json.Unmarshal([]byte(data), &event) != nil {
				continue
			}
			select {
			case shown <- event.Data.Strip:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return shown
}
