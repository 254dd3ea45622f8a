package inspect_test

import (
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

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// make makes so many calls of a resource, each of which takes a time, and returns how many passed.
func makeCalls(t *testing.T, engine *core.Engine, resource string, count int, took time.Duration) (passed int) {
	t.Helper()
	for range count {
		guard, err := engine.Entry(t.Context(), resource)
		if err == nil {
			passed++
		}
		engine.Clock().(*clock.Virtual).Advance(took)
		guard.Exit()
	}
	return passed
}

func advance(engine *core.Engine, d time.Duration) { engine.Clock().(*clock.Virtual).Advance(d) }

func resourcesOf(t *testing.T, server *httptest.Server, query inspect.ResourceQuery) inspect.Resources {
	t.Helper()
	var page inspect.Resources
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/resources?"+query.Query().Encode(), &page))
	return page
}

func names(page inspect.Resources) (names []string) {
	for _, of := range page.Resources {
		names = append(names, of.Name)
	}
	return names
}

func TestResourcesShowWhatHappenedOfLate(t *testing.T) {
	engine, server := newEngine(t,
		flow.Rule{Name: "ten", Resource: "orders:create", Limit: 10},
		flow.Rule{Name: "shadow", Match: "orders:*", Limit: 5, Shadow: true},
		flow.Rule{Name: "idle", Resource: "carts", Limit: 5},
	)
	require.Equal(t, 10, makeCalls(t, engine, "orders:create", 25, 0))
	advance(engine, time.Second)
	open, err := engine.Entry(t.Context(), "orders:create")
	require.NoError(t, err)
	advance(engine, 100*time.Millisecond)
	failed, err := engine.Entry(t.Context(), "orders:create")
	require.NoError(t, err)
	failed.MarkFailed()
	advance(engine, 200*time.Millisecond)
	failed.Exit()
	defer open.Exit()

	page := resourcesOf(t, server, inspect.ResourceQuery{Seconds: true})
	assert.Equal(t, 2, page.Total)
	require.Equal(t, []string{"orders:create", "carts"}, names(page))
	of := page.Resources[0]
	assert.Equal(t, inspect.Calls{Passed: 10, Refused: 15, Completed: 10, MaxInFlight: 1}, of.Second)
	assert.Equal(t, uint64(12), of.Minute.Passed)
	assert.Equal(t, uint64(1), of.Minute.Failed)
	assert.InDelta(t, 0.2, of.Minute.MaxResponseTime, 0)
	assert.Equal(t, int64(1), of.InFlight)
	require.NotNil(t, of.ResponseTimes)
	assert.InEpsilon(t, 0.2, of.ResponseTimes.P99, 0.04)
	require.NotNil(t, of.Seconds)
	assert.Equal(t, page.Time.Truncate(time.Second).Add(-59*time.Second), of.Seconds.Start)
	require.Len(t, of.Seconds.Passed, 60)
	assert.Equal(t, []uint64{0, 10, 2}, of.Seconds.Passed[57:])
	assert.Equal(t, []uint64{0, 15, 0}, of.Seconds.Refused[57:])
	require.Len(t, of.Rules, 2)
	assert.Equal(t, []uint64{0, 15, 0}, of.Rules[0].Seconds[57:])
	of.Rules[0].Seconds, of.Rules[1].Seconds = nil, nil
	assert.Equal(t, []inspect.ResourceRule{
		{Kind: rules.KindFlow, Rule: "ten", Second: number(15), Minute: number(15), Refused: 15},
		{Kind: rules.KindFlow, Rule: "shadow", Shadow: true, Second: number(0), Minute: number(0), WouldBlock: 5},
	}, of.Rules)
	assert.Empty(t, page.Resources[1].Rules, "one that has refused nothing is not shown")
	assert.Nil(t, page.Resources[1].ResponseTimes)

	assert.Nil(t, resourcesOf(t, server, inspect.ResourceQuery{}).Resources[0].Seconds)
}

func TestResourcesAreSortedSelectedAndPaged(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Match: "*", Limit: 3})
	makeCalls(t, engine, "a", 9, 0)
	makeCalls(t, engine, "b", 3, 10*time.Millisecond)
	makeCalls(t, engine, "c:1", 4, 0)
	makeCalls(t, engine, "c:2", 1, time.Millisecond)
	for range 2 {
		guard, err := engine.Entry(t.Context(), "c:2")
		require.NoError(t, err)
		defer guard.Exit()
	}
	for _, test := range []struct {
		query inspect.ResourceQuery
		want  []string
	}{
		{inspect.ResourceQuery{}, []string{"a", "c:1", "b", "c:2"}},
		{inspect.ResourceQuery{Sort: inspect.SortRefused, Limit: 2}, []string{"a", "c:1"}},
		{inspect.ResourceQuery{Sort: inspect.SortPassed}, []string{"a", "c:1", "b", "c:2"}},
		{inspect.ResourceQuery{Sort: inspect.SortName, Offset: 1, Limit: 2}, []string{"b", "c:1"}},
		{inspect.ResourceQuery{Sort: inspect.SortP99}, []string{"b", "c:2", "a", "c:1"}},
		{inspect.ResourceQuery{Sort: inspect.SortInFlight}, []string{"c:2", "a", "b", "c:1"}},
		{inspect.ResourceQuery{Match: "c:*", Sort: inspect.SortName}, []string{"c:1", "c:2"}},
		{inspect.ResourceQuery{Match: "~a|b", Sort: inspect.SortName}, []string{"a", "b"}},
		{inspect.ResourceQuery{Offset: 9}, nil},
	} {
		page := resourcesOf(t, server, test.query)
		assert.Equal(t, test.want, names(page), "%+v", test.query)
	}
	page := resourcesOf(t, server, inspect.ResourceQuery{Sort: inspect.SortName, Limit: 3})
	assert.Equal(t, []int{4, 3}, []int{page.Total, page.Next})
	page = resourcesOf(t, server, inspect.ResourceQuery{Sort: inspect.SortName, Limit: 3, Offset: page.Next})
	assert.Equal(t, []string{"c:2"}, names(page))
	assert.Zero(t, page.Next)
}

func TestRequestsForResourcesThatAreRefused(t *testing.T) {
	_, server := newEngine(t, flow.Rule{Resource: "a", Limit: 1})
	for target, message := range map[string]string{
		"/resources?sort=size":                         `sort is "size": it is one of refused, passed, name, p99, inFlight`,
		"/resources?limit=0":                           "a number from 1 to 1000",
		"/resources?limit=1001":                        "a number from 1 to 1000",
		"/resources?limit=101&seconds=true":            "a number from 1 to 100",
		"/resources?offset=-1":                         `offset is "-1"`,
		"/resources?seconds=maybe":                     "it is true or false",
		"/resources?match=[":                           "inspect: match: ",
		"/resources?match=a&match=b":                   "given twice",
		"/resources?name=a":                            `"name" is unknown`,
		"/resources/a?seconds=true":                    "has no parameters",
		"/resources?sort=" + strings.Repeat("x", 9000): "sort is",
	} {
		var failure inspect.Failure
		assert.Equal(t, http.StatusBadRequest, ask(t, server, http.MethodGet, target, &failure), target)
		assert.Contains(t, failure.Error, message)
		assert.Less(t, len(failure.Error), 500)
	}
	var failure inspect.Failure
	assert.Equal(t, http.StatusNotFound, ask(t, server, http.MethodGet, "/resources/b", &failure))
	assert.Contains(t, failure.Error, `no resource "b" was called`)
}

// Names are chosen by clients, perhaps: whatever they are, they come back as JSON, and are found.
func TestResourcesOfAnyNameAreShownByThemselves(t *testing.T) {
	engine, server := newEngine(t, flow.Rule{Name: "all", Match: "*", Limit: 1})
	for _, name := range []string{
		"GET /orders/{id}", "/", "//", ".", "..", "status", "resources", "<script>alert(1)</script>", "a?b#c%20", "\u202eevil", "日本",
		"a b+c&d=e", "\x00\x1b[31m\"\\", strings.Repeat("ä", 512),
	} {
		makeCalls(t, engine, name, 2, 0)
		var detail inspect.ResourceDetail
		require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/"+inspect.ResourcePath(name), &detail), name)
		assert.Equal(t, name, detail.Name)
		assert.Equal(t, uint64(1), detail.Minute.Refused, name)
		require.Len(t, detail.Limiters, 1)
	}
	response, err := server.Client().Get(server.URL + "/resources?match=" + url.QueryEscape("<*"))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.NotContains(t, string(body), "<script>")
	assert.Contains(t, string(body), `\u003cscript\u003e`)
}

func TestNamesThatAreNotUTF8AreReplaced(t *testing.T) {
	engine, server := newEngine(t)
	makeCalls(t, engine, "a\xffb", 1, 0)
	assert.Equal(t, []string{"a\uFFFDb"}, names(resourcesOf(t, server, inspect.ResourceQuery{})))
	var detail inspect.ResourceDetail
	assert.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/"+inspect.ResourcePath("a\xffb"), &detail))
}

func TestResourceShowsItsRulesWithTheirStates(t *testing.T) {
	engine, server := newEngine(t)
	require.NoError(t, engine.Load(rules.Set{
		Flow:    []flow.Rule{{Name: "two", Resource: "pay", Limit: 2}, {Name: "batch", Resource: "pay", Limit: 1, Origin: "batch"}},
		Breaker: []breaker.Rule{{Name: "errors", Resource: "pay", Threshold: 0.5}},
	}))
	require.NoError(t, engine.Control(core.Scope{Kind: rules.KindBreaker}, breaker.Open))
	makeCalls(t, engine, "pay", 3, 0)
	var detail inspect.ResourceDetail
	require.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/resources/pay", &detail))
	var of []string
	for i, r := range detail.Limiters {
		of = append(of, fmt.Sprintf("%s %s %s %d", r.Kind, r.Name, r.State.State, r.State.Blocked))
		assert.Equal(t, r.Name, detail.Rules[i].Rule)
	}
	assert.Equal(t, []string{"breaker errors open 3", "flow batch  0", "flow two  0"}, of)
	assert.Equal(t, uint64(3), *detail.Rules[0].Minute)
	assert.NotNil(t, detail.Limiters[2].State.Quota)
	assert.Len(t, detail.Seconds.Refused, 60)
}

// Percentiles are those of the last minute while somebody looks, not of all calls ever.
func TestPercentilesAreThoseOfTheLastMinute(t *testing.T) {
	engine, server := newEngine(t)
	look := func() *inspect.ResponseTimes {
		return resourcesOf(t, server, inspect.ResourceQuery{Sort: inspect.SortP99}).Resources[0].ResponseTimes
	}
	makeCalls(t, engine, "r", 100, time.Second)
	assert.InEpsilon(t, 1, look().P50, 0.04)
	assert.Zero(t, look().Since)
	for second := range 100 {
		makeCalls(t, engine, "r", 10, 100*time.Millisecond)
		times := look()
		if second < 4 {
			require.Equal(t, uint64(100+10*(second+1)), times.Count, "so soon after the first look they are of all calls")
			continue
		}
		require.InEpsilon(t, 0.1, times.P99, 0.04)
		age := engine.Clock().Now().Time().Sub(times.Since)
		require.LessOrEqual(t, age, 60*time.Second)
		require.Equal(t, uint64(age/(100*time.Millisecond)), times.Count)
	}
	advance(engine, 10*time.Minute) // nobody looks
	makeCalls(t, engine, "r", 1, time.Millisecond)
	assert.Equal(t, uint64(1101), look().Count, "what happened meanwhile is not that of a minute")
}

// However long names are, a page is bounded, and says where the next one begins.
func TestPagesAreOfLimitedSize(t *testing.T) {
	engine, server := newEngine(t)
	long := strings.Repeat("\x01", 1000) // six bytes each, as JSON
	for i := range 1500 {
		makeCalls(t, engine, fmt.Sprint(long, i), 1, 0)
	}
	seen := map[string]bool{}
	query := inspect.ResourceQuery{Sort: inspect.SortName, Limit: inspect.MaxResources}
	for page := 0; ; page++ {
		response, err := server.Client().Get(server.URL + "/resources?" + query.Query().Encode())
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		response.Body.Close()
		require.Less(t, len(body), 9<<20)
		found := resourcesOf(t, server, query)
		for _, of := range found.Resources {
			seen[of.Name] = true
		}
		if query.Offset = found.Next; query.Offset == 0 {
			break
		}
	}
	assert.Len(t, seen, 1500)
}

func TestOverflowIsAResourceOnceItIsCalled(t *testing.T) {
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)), MaxResources: 2, Logger: slog.New(slog.DiscardHandler),
	})
	defer engine.Close()
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	defer server.Close()
	for i := range 5 {
		makeCalls(t, engine, fmt.Sprint("r", i), 1, 0)
	}
	page := resourcesOf(t, server, inspect.ResourceQuery{})
	require.Equal(t, 3, page.Total)
	assert.Equal(t, rule.OtherResources, page.Resources[0].Name)
	assert.Equal(t, uint64(3), page.Resources[0].Minute.Passed)
	var detail inspect.ResourceDetail
	assert.Equal(t, http.StatusOK, ask(t, server, http.MethodGet, "/"+inspect.ResourcePath(rule.OtherResources), &detail))
}

func BenchmarkResources(b *testing.B) {
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)), MaxResources: 20_000, Logger: slog.New(slog.DiscardHandler),
	})
	defer engine.Close()
	require.NoError(b, engine.Load(rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 2}}}))
	for range 70 {
		for i := range 10_000 {
			for range 3 {
				guard, _ := engine.Entry(b.Context(), fmt.Sprint("resource:", i))
				guard.Exit()
			}
		}
		engine.Clock().(*clock.Virtual).Advance(time.Second)
	}
	handler := inspect.Handler(engine, inspect.Options{})
	for _, target := range []string{
		"/resources", "/resources?sort=name", "/resources?sort=p99", "/resources?limit=1000", "/resources?seconds=true", "/resources/resource:7",
	} {
		b.Run(target, func(b *testing.B) {
			request := httptest.NewRequest(http.MethodGet, target, http.NoBody)
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					b.Fatal(answer.Body)
				}
			}
		})
	}
}

func number(n uint64) *uint64 { return &n }
