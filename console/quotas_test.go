package console

import (
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

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// balances are rules with limits of each sort.
const balances = `
flow:
  - {name: contract, resource: search, limit: 100, window: 1h}
  - {name: credit, resource: search, algorithm: prepaid, limit: 10}
hotParam:
  - {name: tenant-credit, match: "*", perResource: false, param: tenant, algorithm: prepaid, limit: 5}
`

// serveInstance starts an instance with rules and returns how the console asks it.
func serveInstance(t *testing.T, name string, config core.Config, document string) (instance, *core.Engine) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	engine := core.New(config)
	t.Cleanup(engine.Close)
	set, err := rules.Parse("", []byte(document))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	mux := http.NewServeMux()
	mux.Handle("/", inspect.Handler(engine, inspect.Options{}))
	mux.Handle("/control", inspect.ControlHandler(engine, inspect.Options{}))
	server := httptest.NewServer(mux)
	client := newRemoteClient(DefaultDial(), askTimeout)
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
	return instance{name: name, address: strings.TrimPrefix(server.URL, "http://"), base: server.URL + "/", client: client}, engine
}

func call(t *testing.T, engine *core.Engine, options ...core.Option) {
	t.Helper()
	g, err := engine.Entry(t.Context(), "search", options...)
	require.NoError(t, err)
	g.Exit()
}

// gatherQuotas returns what the screen shows of limits, for a caller.
func gatherQuotas(t *testing.T, all []instance, of string) map[string]quotaShown {
	t.Helper()
	s, err := newQuotas(nil, url.Values{"of": {of}})
	require.NoError(t, err)
	shown, index := quotasShown{}, make(map[quotaKey]int)
	for _, a := range s.gather.ask(t.Context(), all, s.ask) {
		require.Empty(t, a.err)
		for i := range a.value.Quotas {
			shown.add(&a.value.Quotas[i], index)
		}
	}
	found := make(map[string]quotaShown)
	for _, q := range shown.Quotas {
		found[q.Rule] = q
	}
	return found
}

func TestLimitsOfEachInstanceAreAddedUp(t *testing.T) {
	a, first := serveInstance(t, "a", core.Config{}, balances)
	b, second := serveInstance(t, "b", core.Config{}, balances)
	acme := core.String("tenant", "acme")
	for range 3 {
		call(t, first, acme)
	}
	call(t, second, acme)
	found := gatherQuotas(t, []instance{a, b}, "")
	contract, credit := found["contract"], found["credit"]
	assert.Equal(t, []float64{100, 200, 4, 196}, []float64{contract.Limit, float64(contract.Effective), *contract.Used, contract.Left})
	assert.Equal(t, 2, contract.Instances)
	assert.WithinDuration(t, time.Now().Add(time.Hour), contract.ResetsAt, time.Hour)
	assert.True(t, credit.Prepaid)
	assert.InDelta(t, 16, credit.Left, 0)
	assert.NotContains(t, found, "tenant-credit", "whose?")
	assert.InDelta(t, 6, gatherQuotas(t, []instance{a, b}, "tenant=acme")["tenant-credit"].Left, 0)

	q := rechargeRequest{Kind: "hotParam", Rule: "tenant-credit", Of: "tenant=acme", Tokens: 100, Reason: "invoice"}
	done := recharged(t, []instance{a, b}, q)
	assert.Equal(t, rechargeDone{Left: 206, Done: 2, Total: 2, Failed: []instanceShown{}}, done)
}

// recharged has instances recharge a balance, as the handler does.
func recharged(t *testing.T, all []instance, q rechargeRequest) rechargeDone {
	t.Helper()
	query := inspect.RuleQuery{Kind: q.Kind, Rule: q.Rule}
	var err error
	query.Origin, query.Attributes, err = callerIn(q.Of)
	require.NoError(t, err)
	order, err := q.order("alice")
	require.NoError(t, err)
	holders, isOfFleet, err := holdersOf(t.Context(), all, query, q.Resource)
	require.NoError(t, err)
	if isOfFleet {
		holders = holders[:1]
	}
	return new(handler).rechargeIn(t.Context(), holders, q.form(query, order))
}

func TestBalanceOfTheFleetIsRechargedOnce(t *testing.T) {
	backend := memory.New(clock.System())
	config := func(name string) core.Config {
		return core.Config{Fleet: fleet.Config{Backend: backend, Instance: name}}
	}
	document := `flow: [{name: credit, resource: search, algorithm: prepaid, limit: 10, scope: fleet}]`
	a, engine := serveInstance(t, "a", config("a"), document)
	b, _ := serveInstance(t, "b", config("b"), document)
	call(t, engine)
	before := gatherQuotas(t, []instance{a, b}, "")["credit"]
	require.True(t, before.Fleet)
	done := recharged(t, []instance{a, b}, rechargeRequest{Kind: "flow", Rule: "credit", Resource: "search", Tokens: 100, Reason: "invoice"})
	assert.Equal(t, 1, done.Total)
	assert.InDelta(t, before.Left+100, float64(done.Left), 0)
	after := gatherQuotas(t, []instance{a, b}, "")["credit"]
	assert.InDelta(t, before.Left+100, after.Left, 0, "added once, not by each instance")
	var shown fleetShown
	var status inspect.Status
	require.NoError(t, a.ask(t.Context(), "status", nil, &status))
	shown.add("a", &status.Fleet.Limits[0])
	assert.True(t, shown.Limits[0].Balance)
	assert.Empty(t, shown.Limits[0].Window, "nothing flows back")
}

func TestMistakesInRechargesAreNamed(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	set, err := rules.Parse("", []byte(balances))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	call(t, engine)
	server := httptest.NewServer(Handler(Options{Engine: engine, Authorize: func(*http.Request) (Identity, Role) { return "alice", Operator }}))
	defer server.Close()
	post := func(body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/recharge", strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		answer, err := server.Client().Do(request)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	for body, want := range map[string]string{
		`{"kind":"flow","rule":"credit","resource":"search","tokens":0,"reason":"x"}`:                                        "tokens are from 1",
		`{"kind":"flow","rule":"credit","resource":"search","tokens":5}`:                                                     "say why",
		`{"rule":"credit","resource":"search","tokens":5,"reason":"x"}`:                                                      "with its kind",
		`{"kind":"flow","rule":"contract","resource":"search","tokens":5,"reason":"x"}`:                                      "no instance has such a balance",
		`{"kind":"flow","rule":"none","tokens":5,"reason":"x"}`:                                                              "no rule",
		`{"kind":"hotParam","rule":"tenant-credit","tokens":5,"reason":"x"}`:                                                 "tenant",
		`{"kind":"hotParam","rule":"tenant-credit","of":"user","tokens":5,"reason":"x"}`:                                     "user",
		`{"kind":"flow","rule":"credit","resource":"search","tokens":99999999999999999,"reason":"x"}`:                        "tokens are from 1",
		`{"kind":"flow","rule":"credit","resource":"search","tokens":1.5,"reason":"x"}`:                                      "cannot be read",
		`{"kind":"flow","rule":"credit","resource":"search","tokens":5,"reason":"` + strings.Repeat("x", maxReason+1) + `"}`: "the reason is too long",
	} {
		code, text := post(body)
		assert.Equal(t, http.StatusBadRequest, code, "%s: %s", body, text)
		assert.Contains(t, text, want, body)
	}
	code, text := post(`{"kind":"flow","rule":"credit","resource":"search","tokens":5,"reason":"invoice <b>1</b>"}`)
	assert.Equal(t, http.StatusOK, code)
	assert.JSONEq(t, `{"left":14,"done":1,"total":1,"failed":[]}`, text)
	events, _ := engine.Events(0)
	last := events[len(events)-1]
	assert.Equal(t, core.EventType("recharge"), last.Type)
	assert.Equal(t, "alice", last.By)
	assert.Contains(t, last.Text, "invoice <b>1</b>")
}
