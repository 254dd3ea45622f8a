package inspect_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ration is a kind of rule that only these tests know: it lets each value of some
// attributes pass so often, ever.
type ration struct {
	Name, Resource, Match string
	Shared                bool
	Keys                  string // separated by commas
	Each                  int
	Origin                string
	Shadow                bool
}

func rationKind() *rule.Type[ration] {
	common := func(r *ration) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	return rule.Define(rule.Spec[ration]{
		Kind: "ration", Phase: rule.PhaseValue, Reason: rule.RateLimited, Common: common,
		Attributes: func(r *ration) []string { return strings.Split(r.Keys, ",") },
		New: func(r *ration, _ rule.Env) rule.Limiter {
			return &rationLimiter{each: uint64(r.Each), values: make(map[string]*rule.ValueStatus)}
		},
	})
}

type rationLimiter struct {
	each uint64

	mu     sync.Mutex
	values map[string]*rule.ValueStatus
}

func (l *rationLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := c.Attribute.String()
	v := l.values[text]
	if v == nil {
		v = &rule.ValueStatus{Value: text}
		l.values[text] = v
	}
	if v.Passed == l.each {
		v.Refused++
		return 0, rule.Block
	}
	v.Passed++
	return 0, rule.Pass
}

func (l *rationLimiter) RetryAfter(c rule.Call) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, isNumber := c.Attribute.Number(); isNumber {
		return 1500 * time.Millisecond
	}
	if v := l.values[c.Attribute.String()]; v != nil && v.Passed == l.each {
		return rule.Never
	}
	return 0
}

func (l *rationLimiter) Status(clock.Instant) (s rule.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.values {
		s.Values = append(s.Values, *v)
	}
	slices.SortFunc(s.Values, func(a, b rule.ValueStatus) int {
		return cmp.Or(cmp.Compare(b.Passed+b.Refused, a.Passed+a.Refused), cmp.Compare(a.Value, b.Value))
	})
	return s
}

func (l *rationLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (l *rationLimiter) Idle(clock.Instant) bool                    { return false }

// newRationed returns an engine with rules of the kind, and a server that shows it.
func newRationed(t *testing.T, list ...ration) (*core.Engine, *httptest.Server) {
	t.Helper()
	kind := rationKind()
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Unix(1_700_000_000, 0)), Logger: slog.New(slog.DiscardHandler), Kinds: []rule.Definition{kind},
	})
	t.Cleanup(engine.Close)
	var set rules.Set
	for _, r := range list {
		set.Custom = append(set.Custom, kind.Of(r))
	}
	require.NoError(t, engine.Load(set))
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	t.Cleanup(server.Close)
	return engine, server
}

// call makes calls of a resource by a user.
func call(t *testing.T, engine *core.Engine, resource, user string, count int) {
	t.Helper()
	for range count {
		if guard, err := engine.Entry(t.Context(), resource, core.String("user", user)); err == nil {
			guard.Exit()
		}
	}
}

func TestStatusShowsTheTenHottestValuesOfARule(t *testing.T) {
	engine, server := newRationed(t,
		ration{Name: "per-user", Match: "orders:*", Keys: "user", Each: 2},
		ration{Name: "unused", Resource: "never", Keys: "user", Each: 2},
	)
	for i := range 12 {
		call(t, engine, "orders:create", fmt.Sprint("u", i), i+1)
	}
	call(t, engine, "orders:list", strings.Repeat("ä", 200)+"\xff", 1)
	var status inspect.Status
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/status", &status))
	require.Len(t, status.Limiters, 2, "one that has nothing to show is left out")
	hot := status.Limiters[0]
	assert.Equal(t, []string{"orders:create", "ration", "per-user"}, []string{hot.Resource, string(hot.Kind), hot.Rule})
	require.Len(t, hot.Values, inspect.MaxValues)
	assert.Equal(t, inspect.Value{Value: "u11", Passed: 2, Refused: 10}, hot.Values[0])
	assert.Equal(t, inspect.Value{Value: "u2", Passed: 2, Refused: 1}, hot.Values[9])
	assert.Equal(t, strings.Repeat("ä", 128)+"…", status.Limiters[1].Values[0].Value, "a long value is cut")
}

func TestLimitersOfOneRuleAreShownByThemselves(t *testing.T) {
	engine, server := newRationed(t,
		ration{Name: "per-user", Match: "orders:*", Keys: "user", Each: 2},
		ration{Name: "together", Match: "orders:*", Shared: true, Keys: "user", Each: 9},
	)
	call(t, engine, "orders:create", "u", 1)
	call(t, engine, "orders:list", "u", 1)
	for query, want := range map[string][]string{
		"":                        {"orders:* together", "orders:create per-user", "orders:list per-user"},
		"kind=ration&resource=":   {"orders:* together", "orders:create per-user", "orders:list per-user"},
		"rule=per-user":           {"orders:create per-user", "orders:list per-user"},
		"resource=orders:*":       {"orders:* together"},
		"rule=per-user&kind=gate": nil,
		inspect.RuleQuery{Resource: "orders:list", Kind: "ration", Rule: "per-user"}.Query().Encode(): {"orders:list per-user"},
	} {
		var found inspect.Limiters
		require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/limiters?"+query, &found), query)
		var names []string
		for _, l := range found.Limiters {
			names = append(names, l.Resource+" "+l.Rule)
			assert.Len(t, l.Values, 1)
		}
		assert.Equal(t, want, names, query)
	}
	for _, query := range []string{"rule=a&rule=b", "name=a", "rule=%zz"} {
		var failure inspect.Failure
		assert.Equal(t, http.StatusBadRequest, ask(t, server, http.MethodGet, "/limiters?"+query, &failure), query)
		assert.Contains(t, failure.Error, "inspect: ")
	}
}

// A rule without a list has no number of entries: not 0, which is that of a missing list.
func TestGaugesThatARuleDoesNotHaveAreNotShown(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Access: []access.Rule{
		{Name: "inline", Resource: "r", Deny: rule.StringsOf("10.0.0.0/8")},
		{Name: "listed", Resource: "r", List: "scrapers"},
	}}))
	call(t, engine, "r", "u", 1)
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	defer server.Close()
	var found inspect.Limiters
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/limiters", &found))
	gauges := make(map[string][]inspect.Gauge)
	for _, l := range found.Limiters {
		gauges[l.Rule] = l.Gauges
	}
	assert.Equal(t, map[string][]inspect.Gauge{"inline": nil, "listed": {{Name: "list_entries", Value: 0}}}, gauges)
}

// Of very many limiters those are shown that matter: in another state than the first, then
// those that refused most.
func TestStatusIsBoundedHoweverManyLimitersThereAre(t *testing.T) {
	engine, _ := newRationed(t, ration{Name: "per-user", Match: "*", Keys: "user", Each: 1})
	const resources = 2*inspect.MaxLimiters + 500
	for i := range resources {
		call(t, engine, fmt.Sprintf("r%05d", i), "u", 1)
	}
	for i := resources - 150; i < resources; i++ {
		call(t, engine, fmt.Sprintf("r%05d", i), "u", 1+i)
	}
	status := inspect.StatusOf(engine)
	require.Len(t, status.Limiters, inspect.MaxLimiters)
	assert.Equal(t, resources-inspect.MaxLimiters, status.MoreLimiters)
	assert.Equal(t, resources-inspect.MaxValueLimiters, status.MoreValues)
	shown := 0
	for i, l := range status.Limiters {
		if len(l.Values) > 0 {
			shown++
			assert.GreaterOrEqual(t, l.Resource, fmt.Sprintf("r%05d", resources-inspect.MaxValueLimiters), "which have refused most")
		}
		if i > 0 {
			assert.Less(t, status.Limiters[i-1].Resource, l.Resource)
		}
	}
	assert.Equal(t, inspect.MaxValueLimiters, shown)
}

func TestExplainTellsWhichAttributesRulesLookAt(t *testing.T) {
	engine, server := newRationed(t,
		ration{Name: "per-user", Resource: "orders", Keys: "user", Each: 1},
		ration{Name: "per-tenant", Resource: "orders", Keys: "tenant,user", Each: 9},
	)
	call(t, engine, "orders", "u1", 2)
	rules := make(map[string]inspect.Rule)
	asked := func(attributes map[string]string) map[string]inspect.Rule {
		for _, r := range explain(t, server, inspect.Call{Resource: "orders", Attributes: attributes}).Rules {
			rules[r.Name] = r
		}
		return rules
	}
	asked(map[string]string{"user": "u1", "unused": "x"})
	assert.Equal(t, []inspect.Attribute{{Key: "user", Type: "text", Value: "u1"}}, rules["per-user"].Attributes)
	assert.Equal(t, []inspect.Attribute{{Key: "tenant"}, {Key: "user", Type: "text", Value: "u1"}}, rules["per-tenant"].Attributes)
	state := rules["per-user"].State
	assert.True(t, state.CannotPass)
	assert.Equal(t, []inspect.Value{{Value: "u1", Passed: 1, Refused: 1}}, state.Values)

	asked(map[string]string{"user": "7", "tenant": "true"})
	assert.Equal(t, inspect.Attribute{Key: "user", Type: "number", Value: "7"}, rules["per-user"].Attributes[0])
	assert.InDelta(t, 1.5, rules["per-user"].State.RetryAfter, 0)
	assert.False(t, rules["per-user"].State.CannotPass)
	assert.Equal(t, "boolean", rules["per-tenant"].Attributes[0].Type)

	asked(map[string]string{"user": `"7"`})
	assert.Equal(t, inspect.Attribute{Key: "user", Type: "text", Value: "7"}, rules["per-user"].Attributes[0])
	assert.Zero(t, rules["per-user"].State.RetryAfter)
}

func TestStatusTellsOfLists(t *testing.T) {
	engine, server := newRationed(t)
	var b list.Builder
	require.NoError(t, errors.Join(b.AddText("x"), b.AddText("y")))
	l, err := b.Build(t.Context())
	require.NoError(t, err)
	now := engine.Clock().Now()
	from := list.Provider{Source: "file:/lists", Document: "scrapers.txt"}
	engine.Lists().Put("scrapers", from, list.Version{List: l, Digest: [32]byte{0xab}, At: now})
	engine.Lists().Judge("scrapers", from, errors.New("line 3: no address"), now.Add(time.Second))
	engine.Lists().Set("own", l)
	size := engine.Lists().Status("own")[0].Size
	assert.Positive(t, size)
	var status inspect.Status
	ask(t, server, http.MethodGet, "/status", &status)
	assert.Equal(t, []inspect.List{
		{Name: "own", InForce: true, Entries: 2, Bytes: size},
		{
			Name: "scrapers", Source: "file:/lists", Document: "scrapers.txt", InForce: true, Entries: 2, Bytes: size,
			Digest: "ab" + strings.Repeat("0", 62), Since: now.Time(),
			Error: "line 3: no address", FailedAt: now.Add(time.Second).Time(),
		},
	}, status.Lists)
}

func BenchmarkStatusOfTenThousandResources(b *testing.B) {
	kind := rationKind()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Kinds: []rule.Definition{kind}})
	defer engine.Close()
	if err := engine.Load(rules.Set{Custom: []rule.Rule{kind.Of(ration{Name: "per-user", Match: "hot:*", Keys: "user", Each: 1})}}); err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		name := fmt.Sprint("r", i)
		if i < 20 {
			name = fmt.Sprint("hot:", i)
		}
		if guard, err := engine.Entry(b.Context(), name, core.String("user", "u")); err == nil {
			guard.Exit()
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		inspect.StatusOf(engine)
	}
}
