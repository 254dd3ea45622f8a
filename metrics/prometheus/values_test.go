package penstockprom_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// census is a kind of rule that only this test knows: it counts the calls of each user.
type census struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

func censusKind() *rule.Type[census] {
	common := func(c *census) rule.Common {
		return rule.Common{
			Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow,
		}
	}
	return rule.Define(rule.Spec[census]{
		Kind: "census", Phase: rule.PhaseValue, Common: common,
		Attributes: func(*census) []string { return []string{"user"} },
		New:        func(*census, rule.Env) rule.Limiter { return &censusLimiter{calls: make(map[string]uint64)} },
		Gauges:     []rule.Gauge{{Name: "users", Help: "Users that were seen."}},
	})
}

type censusLimiter struct {
	mu    sync.Mutex
	calls map[string]uint64
}

func (l *censusLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c.Attribute.String()]++
	return 0, rule.Pass
}

func (l *censusLimiter) Status(clock.Instant) rule.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := rule.Status{Gauges: []float64{float64(len(l.calls))}}
	for user, calls := range l.calls {
		s.Values = append(s.Values, rule.ValueStatus{Value: user, Passed: calls})
	}
	return s
}

func (l *censusLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (l *censusLimiter) RetryAfter(rule.Call) time.Duration         { return 0 }
func (l *censusLimiter) Idle(clock.Instant) bool                    { return false }

func TestNoLabelHasAValueOrAnEntryOfAList(t *testing.T) {
	const secret = "eve-7f31"
	kind := censusKind()
	s := newService(t, core.Config{Kinds: []rule.Definition{kind}})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Custom: []rule.Rule{kind.Of(census{Name: "users", Resource: "orders"})}}))
	for i := range 7 {
		guard, err := s.Entry(t.Context(), "orders", core.String("user", fmt.Sprint(secret, i)))
		require.NoError(t, err)
		guard.Exit()
	}
	var b list.Builder
	require.NoError(t, b.AddText(secret))
	banned, err := b.Build(t.Context())
	require.NoError(t, err)
	s.Lists().Set("banned", banned)
	states := s.Snapshot().Resources[0].Rules
	require.Len(t, states[0].Values, 7, "the engine knows them")

	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	all := scrape(t, collector)
	assert.InDelta(t, 7, all[`penstock_census_users{resource="orders",rule="users"}`], 0)
	for name := range all {
		assert.NotContains(t, name, secret)
	}
	assert.NotContains(t, fmt.Sprint(descriptions(collector)), secret)
}

func TestGaugesThatARuleDoesNotHaveAreNotExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Access: []access.Rule{
		{Name: "inline", Resource: "r", Deny: rule.StringsOf("10.0.0.0/8")},
		{Name: "listed", Resource: "r", List: "scrapers"},
	}}))
	s.Resource("r")
	all := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	assert.Len(t, all.of("penstock_access_list_entries"), 1)
	assert.Contains(t, all, `penstock_access_list_entries{resource="r",rule="listed"}`)
}

func TestListsAreExposed(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	listOf := func(entries ...string) *list.List {
		var b list.Builder
		for _, entry := range entries {
			require.NoError(t, b.AddText(entry))
		}
		l, err := b.Build(t.Context())
		require.NoError(t, err)
		return l
	}
	lists := s.Lists()
	at := s.clock.Now()
	lists.Put("scrapers", list.Provider{Source: "files", Document: "a"}, list.Version{List: listOf("x", "y"), At: at})
	lists.Put("scrapers", list.Provider{Source: "more", Document: "b"}, list.Version{List: listOf("z"), At: at})
	lists.Judge("scrapers", list.Provider{Source: "more", Document: "c"}, errors.New("line 7"), at)
	lists.Judge("broken", list.Provider{Source: "files", Document: "b"}, errors.New("line 1"), at)
	lists.Set("code\xff", listOf("a", "b", "c"))
	lists.Set("code\xfe", listOf()) // which has the same label
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	all := scrape(t, collector)
	assert.InDelta(t, 1000, all[`penstock_list_loaded_timestamp_seconds{list="scrapers",source="files"}`], 0)
	assert.InDelta(t, 2, all[`penstock_list_entries{list="scrapers",source="files"}`], 0)
	assert.Len(t, all.of("penstock_list_entries"), 2, "those in force")
	assert.Equal(t, []string{
		`penstock_list_rejected{list="broken",source="files"}`,
		`penstock_list_rejected{list="code` + "�" + `",source="code"}`,
		`penstock_list_rejected{list="scrapers",source="files"}`,
		`penstock_list_rejected{list="scrapers",source="more"}`,
	}, all.of("penstock_list_rejected"))
	assert.InDelta(t, 2, all.sum("penstock_list_rejected"), 0)
	lists.Judge("broken", list.Provider{Source: "files", Document: "b"}, nil, 0)
	assert.InDelta(t, 1, scrape(t, collector).sum("penstock_list_rejected"), 0)
}

func TestListsThatAreMissingHeldBackOrCopiesAreExposed(t *testing.T) {
	s := newService(t, core.Config{MaxRemoval: 0.5})
	defer s.Close()
	require.NoError(t, s.Load(rules.Set{Access: []access.Rule{
		{Name: "a", Resource: "r", List: "scrapers"}, {Name: "b", Resource: "r", List: "gone"}, {Name: "c", Resource: "r", List: "gone"},
	}}))
	var b list.Builder
	require.NoError(t, b.Add("10.0.0.0/8"))
	l, err := b.Build(t.Context())
	require.NoError(t, err)
	from := list.Provider{Source: "etcd", Document: "scrapers"}
	s.Lists().Put("scrapers", from, list.Version{List: l, CopiedAt: s.clock.Now()})
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	all := scrape(t, collector)
	assert.Equal(t, []string{`penstock_list_missing{list="gone"}`}, all.of("penstock_list_missing"))
	assert.InDelta(t, 1, all[`penstock_list_on_copy{list="scrapers",source="etcd"}`], 0)
	assert.InDelta(t, 0, all[`penstock_list_held_back{list="scrapers",source="etcd"}`], 0)
	s.Lists().Judge("scrapers", from, nil, 0)
	s.Lists().Withdraw("scrapers", from)
	all = scrape(t, collector)
	assert.InDelta(t, 0, all[`penstock_list_on_copy{list="scrapers",source="etcd"}`], 0)
	assert.InDelta(t, 1, all[`penstock_list_held_back{list="scrapers",source="etcd"}`], 0)
}

func descriptions(collector prometheus.Collector) (texts []string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		collector.Describe(descs)
	}()
	for desc := range descs {
		texts = append(texts, desc.String())
	}
	return texts
}

// Kinds are refused whose names begin like metrics of the engine: see rules.NewTable.
func TestNoKindCanBeNamedLikeTheMetricsOfTheEngine(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	checked := 0
	for _, description := range descriptions(penstockprom.NewCollector(s.Engine, penstockprom.Options{})) {
		_, name, _ := strings.Cut(description, `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		first, _, more := strings.Cut(strings.TrimPrefix(name, "penstock_"), "_")
		if !more || isOfKind(s.Engine, name) { // names of kinds' metrics have several words
			continue
		}
		checked++
		assert.Panics(t, func() { rules.NewTable(renamed{censusKind(), rule.Kind(first)}) }, name)
	}
	assert.Greater(t, checked, 15)
}

// isOfKind says whether a metric is one of the rules of a kind.
func isOfKind(engine *core.Engine, metric string) bool {
	return slices.ContainsFunc(engine.Kinds(), func(kind rule.Definition) bool {
		return strings.HasPrefix(metric, rule.MetricName(kind.Kind(), ""))
	})
}

// renamed is a kind by another name.
type renamed struct {
	rule.Definition
	name rule.Kind
}

func (r renamed) Kind() rule.Kind { return r.name }
