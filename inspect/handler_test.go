package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newEngine returns an engine whose time stands still, and a server that shows
// it.
func newEngine(t *testing.T, list ...flow.Rule) (*core.Engine, *httptest.Server) {
	t.Helper()
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	engine := core.New(core.Config{Clock: clock.NewVirtual(at), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: list}))
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	t.Cleanup(server.Close)
	return engine, server
}

// ask sends a request, decodes the answer and returns its status.
func ask(t *testing.T, server *httptest.Server, method, target string, answer any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, http.NoBody)
	if !assert.NoError(t, err) {
		return 0
	}
	response, err := server.Client().Do(request)
	if !assert.NoError(t, err) {
		return 0
	}
	defer response.Body.Close()
	assert.Equal(t, "application/json", response.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	data, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	assert.NoError(t, json.Unmarshal(data, answer), "%s", data)
	return response.StatusCode
}

func explain(t *testing.T, server *httptest.Server, call inspect.Call) inspect.Explanation {
	t.Helper()
	var e inspect.Explanation
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/explain?"+call.Query().Encode(), &e))
	assert.Equal(t, call, e.Call)
	return e
}

func TestExplainTellsRulesInOrderWithTheirState(t *testing.T) {
	engine, server := newEngine(t,
		flow.Rule{Name: "shadow", Match: "orders:*", Limit: 1, Shadow: true},
		flow.Rule{Name: "window", Resource: "orders:create", Limit: 2, Window: time.Minute},
		flow.Rule{Name: "queue", Resource: "orders:create", Limit: 50, Algorithm: flow.Throttle, MaxWait: time.Second},
		flow.Rule{Name: "batch", Resource: "orders:create", Limit: 1, Origin: "batch"},
	)
	for range 4 {
		if guard, err := engine.Entry(t.Context(), "orders:create"); err == nil {
			guard.Exit()
		}
		engine.Clock().(*clock.Virtual).Advance(time.Second)
	}
	e := explain(t, server, inspect.Call{Resource: "orders:create", Origin: "mobile", Attributes: map[string]string{"user": "7"}})
	var names []string
	for _, rule := range e.Rules {
		names = append(names, rule.Name)
		require.NotNil(t, rule.State)
	}
	require.Equal(t, []string{"queue", "window", "shadow"}, names)

	window := e.Rules[1]
	assert.Equal(t, rules.KindFlow, window.Kind)
	assert.Equal(t, []inspect.Field{{Name: "resource", Value: "orders:create"}, {Name: "limit", Value: "2"}, {Name: "window", Value: "1m"}}, window.Fields)
	assert.Equal(t, inspect.State{Quota: &inspect.Quota{Effective: 2, Window: 60, Remaining: 0, Reset: window.State.Reset}, RetryAfter: window.State.RetryAfter, Blocked: 2}, *window.State)
	assert.InDelta(t, 56, window.State.Reset, 6)
	assert.InDelta(t, 56, window.State.RetryAfter, 6)
	assert.True(t, e.Rules[2].Shadow)
	assert.InDelta(t, 50, float64(e.Rules[0].State.Effective), 0)
}

func TestExplainingRemembersNothing(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Match: "*", Limit: 1})
	for _, name := range []string{"a", "b", "日本 &=?"} {
		assert.Len(t, explain(t, server, inspect.Call{Resource: name}).Rules, 1)
	}
	assert.Empty(t, engine.Snapshot().Resources)
}

func TestACallWithoutRulesHasAnEmptyList(t *testing.T) {
	_, server := newEngine(t)
	var answer map[string]any
	ask(t, server, http.MethodGet, "/explain?resource=a", &answer)
	assert.Equal(t, map[string]any{"resource": "a", "rules": []any{}}, answer)
}

func TestRequestsThatAreRefused(t *testing.T) {
	_, server := newEngine(t, flow.Rule{Resource: "a", Limit: 1})
	long := strings.Repeat("x", rule.MaxNameLength+1)
	for _, c := range []struct {
		method, target string
		code           int
		message        string
	}{
		{http.MethodGet, "/", http.StatusNotFound, "ask for status, ready or explain"},
		{http.MethodGet, "/status/x", http.StatusNotFound, "ask for status, ready or explain"},
		{http.MethodPost, "/status", http.StatusMethodNotAllowed, "only GET"},
		{http.MethodDelete, "/explain?resource=a", http.StatusMethodNotAllowed, "only GET"},
		{http.MethodGet, "/explain", http.StatusBadRequest, "the resource is missing"},
		{http.MethodGet, "/explain?resource=", http.StatusBadRequest, "the resource is missing"},
		{http.MethodGet, "/explain?resource=%zz", http.StatusBadRequest, "invalid URL escape"},
		{http.MethodGet, "/explain?resource=a&resource=b", http.StatusBadRequest, `"resource" is unknown or given twice`},
		{http.MethodGet, "/explain?resource=a&orign=b", http.StatusBadRequest, `"orign" is unknown or given twice`},
		{http.MethodGet, "/explain?resource=" + long, http.StatusBadRequest, "1025 bytes long: the most is 1024"},
		{http.MethodGet, "/explain?resource=a&origin=" + long, http.StatusBadRequest, "1025 bytes long"},
		{http.MethodGet, "/explain?resource=a&attr=a=" + long, http.StatusBadRequest, "1025 bytes long"},
		{http.MethodGet, "/explain?resource=a" + manyAttributes(inspect.MaxAttributes+1), http.StatusBadRequest, "33 attributes: the most is 32"},
	} {
		var failure inspect.Failure
		assert.Equal(t, c.code, ask(t, server, c.method, c.target, &failure), c.target)
		assert.Contains(t, failure.Error, c.message)
	}
}

// oneDocument is a source of one sound document and one with a mistake, which
// then loses its connection.
type oneDocument struct{}

func (oneDocument) Name() string { return "shelf" }

func (oneDocument) Run(ctx context.Context, sink core.Sink) error {
	sink.Apply(core.Change{Complete: true, Revision: 9, Documents: []core.Document{
		{Name: "good.yaml", Revision: 7, Data: []byte("flow:\n  - resource: a\n    limit: 1\n")},
		{Name: "bad.yaml", Revision: 8, Data: []byte("flow: 1\n")},
	}})
	sink.Disconnected(errors.New("the shelf fell"))
	<-ctx.Done()
	return ctx.Err()
}

func TestStatusTellsOfSourcesAndDocuments(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Resource: "b", Limit: 1})
	require.NoError(t, engine.Follow(t.Context(), oneDocument{}))
	require.NoError(t, engine.Ready(t.Context()))
	var status inspect.Status
	require.Eventually(t, func() bool {
		ask(t, server, http.MethodGet, "/status", &status)
		return len(status.Sources) == 1 && !status.Sources[0].Connected
	}, 2*time.Minute, time.Millisecond)
	noon := engine.Clock().Now().Time()
	assert.Equal(t, inspect.Status{
		Time: noon, Revision: 2, AppliedAt: noon, Rules: 2, Unmatched: 2, UnmatchedRules: status.UnmatchedRules,
		Sources: []inspect.Source{{
			Name: "shelf", Ready: true, Since: noon, Error: "the shelf fell", Revision: 9, KnownUntil: noon,
			Documents: []inspect.Document{
				{Name: "bad.yaml", Rejected: status.Sources[0].Documents[0].Rejected, RejectedRevision: 8},
				{Name: "good.yaml", Rules: 1, Revision: 7, Digest: "9c0abfce0fb08a2a17ce6f29d42de91913823b048be08f37d51ea691d6001f3e", AppliedAt: noon},
			},
		}},
	}, status)
	assert.Contains(t, status.Sources[0].Documents[0].Rejected, "rules: bad.yaml:1:7: ")
	assert.Len(t, status.UnmatchedRules, 2)
}

func TestRulesOfSourcesTellWhereTheyStand(t *testing.T) {
	engine, server := newEngine(t)
	require.NoError(t, engine.Follow(t.Context(), oneDocument{}))
	require.NoError(t, engine.Ready(t.Context()))
	rule := explain(t, server, inspect.Call{Resource: "a"}).Rules[0]
	assert.Equal(t, []any{"shelf", "good.yaml", 2, 5}, []any{rule.Source, rule.Document, rule.Line, rule.Column})
}

func TestStatusOfAnEngineWithoutAnything(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	recorder := httptest.NewRecorder()
	inspect.Handler(engine, inspect.Options{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/debug/penstock/status", http.NoBody))
	var answer map[string]any
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	delete(answer, "time")
	assert.Equal(t, map[string]any{"revision": 0.0, "rules": 0.0, "sources": []any{}}, answer)
}

func TestTheDefaultEngineIsMeantWithoutOne(t *testing.T) {
	recorder := httptest.NewRecorder()
	inspect.Handler(nil, inspect.Options{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/explain?resource=a", http.NoBody))
	assert.Equal(t, http.StatusOK, recorder.Code)
}

func FuzzCallsComeThroughTheirQuery(f *testing.F) {
	f.Add("orders:create", "mobile", "7")
	f.Add("日本", "", "")
	f.Fuzz(func(t *testing.T, resource, origin, arg string) {
		call := inspect.Call{Resource: resource, Origin: origin, Attributes: map[string]string{"key": arg}}
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
		defer engine.Close()
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "/explain", http.NoBody)
		request.URL = &url.URL{Path: "/explain", RawQuery: call.Query().Encode()}
		inspect.Handler(engine, inspect.Options{}).ServeHTTP(recorder, request)
		if call.Validate() != nil {
			assert.Equal(t, http.StatusBadRequest, recorder.Code)
			return
		}
		var answer inspect.Explanation
		require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
		assert.Equal(t, string([]rune(resource)), answer.Resource)
	})
}

// manyAttributes returns so many parameters of a query.
func manyAttributes(count int) (query string) {
	for i := range count {
		query += fmt.Sprintf("&attr=a%d=1", i)
	}
	return query
}
