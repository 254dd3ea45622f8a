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
			return []float64{0, 1, 1e15, 9e18, 2*v + 1}[random.IntN(5)]
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

// Instances that answer what no instance would cannot stop the console, nor write into its streams.
func TestInstancesThatAnswerGarbageDoNoHarm(t *testing.T) {
	set, err := rules.Parse("a.yaml", []byte(`
flow: [{name: limit, resource: orders, limit: 3}, {name: shared, resource: orders, limit: 9, scope: fleet}]
hotParam: [{name: users, resource: orders, param: user, limit: 1}]
breaker: [{name: errors, resource: orders, threshold: 0.5}]
isolation: [{name: pool, resource: orders, limit: 3}]
access: [{name: blocked, resource: orders, list: scrapers}]
`))
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(set))
	require.NoError(t, engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "a"}))
	require.NoError(t, engine.ControlKind("breaker", "open"))
	for n := range 20 {
		guard, _ := engine.Entry(t.Context(), "orders", core.String("user", fmt.Sprint("u", n%3)))
		guard.Exit()
	}
	truth := inspect.Handler(engine)
	random := rand.New(rand.NewPCG(7, 7))
	var transport inProcess
	transport.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		truth.ServeHTTP(answer, r)
		var value any
		_ = json.Unmarshal(answer.Body.Bytes(), &value)
		garbage, err := json.Marshal(mutated(random, value))
		if err == nil {
			_, _ = w.Write(garbage)
		}
	})
	o := Options{Store: new(store.Store)}
	o = o.complete()
	h := &handler{Options: o, kinds: o.table(), fleet: newInstances(&o), topics: newTopics()}
	h.statuses = &statuses{fleet: h.fleet}
	h.fleet.remote = &http.Client{Transport: transport}
	h.fleet.known.Instances = []etcd.Report{{Instance: "a", Inspect: "127.0.0.1:1"}}
	h.fleet.at = time.Now().Add(time.Hour) // as if etcd had just said so
	read := 0
	for n := range 150 {
		for _, query := range []string{"screen=overview", "screen=overview&sort=p99", "screen=resource&name=orders", "screen=fleet", "screen=instances", "screen=lists"} {
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
