package console

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// mutated returns a value of JSON of which parts are others: missing, longer, far too large, negative, or
// hostile. Most are of the same type, so that they are read.
func mutated(random *rand.Rand, value any) any {
	if random.IntN(60) == 0 {
		switch v := value.(type) {
		case float64:
			return []float64{0, 1, 1e15, 9e18, -v - 1, 2*v + 1, 1.7e308, 1e-320}[random.IntN(8)]
		case bool:
			return !v
		case string:
			if _, err := time.Parse(time.RFC3339, v); err == nil {
				return []string{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00.000000001Z"}[random.IntN(3)]
			}
			return []string{"", "<script>alert(1)</script>", "\u202e\r\nevent: screen\r\n\r\n", strings.Repeat("x", 10_000)}[random.IntN(4)]
		}
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			if random.IntN(40) == 0 {
				delete(v, key)
			} else {
				v[key] = mutated(random, v[key])
			}
		}
	case []any:
		if random.IntN(12) == 0 {
			v = append(v, v[:random.IntN(len(v)+1)]...)
		}
		if random.IntN(12) == 0 {
			v = v[:random.IntN(len(v)+1)]
		}
		for i := range v {
			v[i] = mutated(random, v[i])
		}
		return v
	}
	return value
}

// busyEngine returns one that has something to tell on every screen.
func busyEngine(t *testing.T) *core.Engine {
	t.Helper()
	set, err := rules.Parse("a.yaml", []byte(`
flow: [{name: limit, resource: orders, limit: 3}, {name: shared, resource: orders, limit: 9, scope: fleet}]
hotParam: [{name: users, resource: orders, param: user, limit: 1}]
breaker: [{name: errors, resource: orders, threshold: 0.5}]
isolation: [{name: pool, resource: orders, limit: 3}]
access: [{name: blocked, resource: orders, list: scrapers}]
`))
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(set))
	require.NoError(t, engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "a"}))
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker"}, "open"))
	for n := range 20 {
		guard, _ := engine.Entry(t.Context(), "orders", core.String("user", fmt.Sprint("u", n%3)))
		guard.Exit()
	}
	return engine
}

// consoleOf returns a console of two instances, which are asked by a transport.
func consoleOf(transport http.RoundTripper) *handler {
	o := Options{Store: new(store.Store)}
	o = o.complete()
	h := &handler{Options: o, kinds: o.table(), fleet: newInstances(&o), topics: newTopics()}
	h.statuses = &statuses{fleet: h.fleet}
	h.fleet.remote = &http.Client{Transport: transport}
	h.fleet.known.Instances = []etcd.Report{{Instance: "a", Inspect: "127.0.0.1:1"}, {Instance: "b", Inspect: "127.0.0.1:2"}}
	h.fleet.at = time.Now().Add(time.Hour) // as if etcd had just said so
	return h
}

func screens() []string {
	return []string{
		"screen=overview", "screen=overview&sort=p99", "screen=resource&name=orders", "screen=quotas", "screen=quotas&of=user%3Du1",
		"screen=fleet", "screen=instances", "screen=lists",
	}
}

// Instances that answer what no instance would cannot stop the console, nor write into its streams.
func TestInstancesThatAnswerGarbageDoNoHarm(t *testing.T) {
	truth := inspect.Handler(busyEngine(t), inspect.Options{})
	random := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex // guards random
	var transport inProcess
	transport.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		truth.ServeHTTP(answer, r)
		var value any
		_ = json.Unmarshal(answer.Body.Bytes(), &value)
		mu.Lock()
		garbage, err := json.Marshal(mutated(random, value))
		mu.Unlock()
		if err == nil {
			_, _ = w.Write(garbage)
		}
	})
	h := consoleOf(transport)
	read := 0
	for n := range 150 {
		for _, query := range screens() {
			values, err := url.ParseQuery(query)
			require.NoError(t, err)
			of, err := h.open(values)
			require.NoError(t, err)
			h.statuses.forget()
			for range 2 {
				data, err := of.read(t.Context())
				text, broken := json.Marshal(shownScreen{data, textOf(err)})
				require.NoError(t, broken, "%d: %s", n, query)
				if strings.Contains(string(text), `"limit"`) {
					read++
				}
				assert.NotContains(t, string(text), "<script>")
				assert.NotContains(t, string(text), "\n")
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/explain?resource=orders&attr=user=alice", http.NoBody)
		found, err := h.explain(request{Request: r, query: r.URL.Query()})
		_, broken := json.Marshal(found)
		require.NoError(t, broken, "%v", err)
	}
	assert.Positive(t, read, "some of it is shown")
}

// enlarged returns a value of JSON with a number that is far too large in place of all of one name.
func enlarged(value any, name string) any {
	const huge = 1.7e308
	switch v := value.(type) {
	case map[string]any:
		for key, of := range v {
			_, isNumber := of.(float64)
			list, isList := of.([]any)
			switch {
			case key == name && isNumber:
				v[key] = huge
			case key == name && isList:
				for i := range list {
					list[i] = huge
				}
			default:
				v[key] = enlarged(of, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = enlarged(v[i], name)
		}
	}
	return value
}

// Numbers whose sum is infinite are no JSON: the page would show nothing, of any instance.
func TestInstancesThatTellHugeNumbersAreNamed(t *testing.T) {
	truth := inspect.Handler(busyEngine(t), inspect.Options{})
	named := 0
	for _, name := range []string{
		"meanResponseTime", "maxResponseTime", "p99", "demand", "passed", "limit", "granted", "ceiling", "window", "used", "reset", "value", "latency", "utilization", "penalty",
	} {
		h := consoleOf(inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			truth.ServeHTTP(answer, r)
			var value any
			_ = json.Unmarshal(answer.Body.Bytes(), &value)
			_ = json.NewEncoder(w).Encode(enlarged(value, name))
		})})
		for _, query := range screens() {
			if text := screenText(t, h, query); strings.Contains(text, errNotTrue.Error()) {
				named++
			}
		}
	}
	assert.Greater(t, named, 10, "instances are named")
}

// Whoever may write to etcd may report thousands of instances. Those that were known stay, and the others are a number.
func TestForgedReportsAreANumber(t *testing.T) {
	h := consoleOf(inProcess{inspect.Handler(busyEngine(t), inspect.Options{})})
	h.fleet.good = h.fleet.known.Instances
	forged := store.Deployment{}
	for n := range 5000 {
		forged.Instances = append(forged.Instances, etcd.Report{
			Instance: fmt.Sprintf("A%04d", n), Inspect: fmt.Sprintf("192.0.2.1:%d", n+1), Rejected: make([]etcd.Rejection, 150),
		})
	}
	forged.Instances = append(forged.Instances, h.fleet.known.Instances...)
	h.fleet.heard(forged, nil, h.fleet.at)
	all, err := h.fleet.list(t.Context())
	require.NoError(t, err)
	require.Len(t, all, maxInstances+1)
	assert.Equal(t, "4802 more", all[maxInstances].name)
	assert.Contains(t, all[maxInstances].problem, "200 instances")
	assert.Equal(t, []string{"a", "b"}, []string{all[maxInstances-2].name, all[maxInstances-1].name})
	reports := h.fleet.known.Instances
	assert.Len(t, reports[maxInstances-1].Rejected, maxRejected)
	assert.Equal(t, 50, reports[maxInstances-1].MoreRejected)
	for _, query := range screens() {
		text := screenText(t, h, query)
		assert.Less(t, len(text), 1<<20, query)
		assert.NotContains(t, text, "A4999", query)
	}
	assert.Equal(t, 5002, h.strip(t.Context()).Instances)
}

// screenText returns what a page is told of a screen.
func screenText(t *testing.T, h *handler, query string) string {
	values, err := url.ParseQuery(query)
	require.NoError(t, err)
	of, err := h.open(values)
	require.NoError(t, err)
	data, err := of.read(t.Context())
	text, broken := json.Marshal(shownScreen{data, textOf(err)})
	require.NoError(t, broken, query)
	return string(text)
}
