package penstockprom_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

const passedTotal = "penstock_passed_total"

func isCounter(key string) bool {
	name, _, _ := strings.Cut(key, "{")
	for _, suffix := range []string{"_total", "_count", "_sum", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// assertGrowth asserts that no counter that still exists went down.
func assertGrowth(t assert.TestingT, before, now series) {
	for key, value := range now {
		if was, there := before[key]; there && isCounter(key) {
			assert.GreaterOrEqual(t, value, was, key)
		}
	}
}

func TestSeriesAreBoundedForUnboundedNames(t *testing.T) {
	const names, most = 10_000, 20
	s := newService(t, core.Config{},
		flow.Rule{Resource: "ruled", Limit: 1}, flow.Rule{Resource: "never called", Limit: 1})
	defer s.Close()
	for i := range names {
		s.calls(fmt.Sprintf("name %05d", i), 1)
	}
	s.calls("ruled", 1)
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: most})
	for range 2 {
		now := scrape(t, collector)
		require.Len(t, now.of(passedTotal), most+1, "those that rules name are among them")
		assert.InDelta(t, names-(most-2), now[passed("(other)")], 0)
		assert.InDelta(t, names-(most-2), now["penstock_resources_without_series"], 0)
		assert.InDelta(t, names+2, now["penstock_resources"], 0)
		assert.InDelta(t, names+1, now.sum(passedTotal), 0)
		assert.InDelta(t, 1, now[passed("name 00000")], 0)
		assert.Contains(t, now, passed("ruled"))
		assert.Contains(t, now, passed("never called"))
	}
}

func TestResourceKeepsItsSeriesWhileItIsCalled(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 1})
	s.calls("m", 1)
	scrape(t, collector)
	for range 10 { // two minutes
		s.clock.Advance(12 * time.Second)
		s.calls("m", 1)
		s.calls("a", 100) // busier, and earlier in the alphabet
		now := scrape(t, collector)
		require.Contains(t, now, passed("m"))
		require.NotContains(t, now, passed("a"))
	}
	now := scrape(t, collector)
	assert.InDelta(t, 11, now[passed("m")], 0)
	assert.InDelta(t, 1000, now[passed("(other)")], 0)
}

func TestEvictedResourceFreesItsSeries(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 1})
	s.calls("first", 5)
	s.calls("second", 3)
	before := scrape(t, collector)
	require.InDelta(t, 3, before[passed("(other)")], 0)

	s.clock.Advance(50 * time.Second)
	s.calls("second", 1)
	scrape(t, collector)
	s.clock.Advance(50 * time.Second)
	s.calls("second", 1)
	now := scrape(t, collector)
	assert.NotContains(t, now, passed("first"))
	assert.InDelta(t, 4, now[passed("(other)")], 0, "what was counted there stays there")
	assert.InDelta(t, 1, now[passed("second")], 0)
}

func TestResourceNamedByARuleHasSeriesBeforeOthers(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 1})
	s.calls("a", 1)
	s.calls("b", 10)
	before := scrape(t, collector)
	require.InDelta(t, 1, before[passed("a")], 0)
	require.InDelta(t, 10, before[passed("(other)")], 0)

	s.load(t, flow.Rule{Resource: "b", Limit: 12})
	s.calls("a", 2)
	s.calls("b", 4)
	now := scrape(t, collector)
	assertGrowth(t, before, now)
	assert.InDelta(t, 10+2, now[passed("(other)")], 0)
	assert.InDelta(t, 4, now[passed("b")], 0)
	assert.NotContains(t, now, passed("a"))

	s.load(t)
	s.calls("a", 3)
	s.calls("b", 5)
	last := scrape(t, collector)
	assertGrowth(t, now, last)
	assert.InDelta(t, 4+5, last[passed("b")], 0, "no rule names either, and b has series")
	assert.InDelta(t, 12+3, last[passed("(other)")], 0)
}

func TestMoreResourcesNamedByRulesThanTheBoundAreSummedUp(t *testing.T) {
	const names, most = 50, 10
	var named []flow.Rule
	for i := range names {
		named = append(named, flow.Rule{Resource: fmt.Sprintf("name %02d", i), Limit: 1})
	}
	s := newService(t, core.Config{}, named...)
	defer s.Close()
	for i := range names {
		s.calls(fmt.Sprintf("name %02d", i), 2)
	}
	now := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: most}))
	assert.Len(t, now.of(passedTotal), most+1)
	assert.Len(t, now.of("penstock_flow_ceiling_tokens_per_second"), most, "each rule is on one resource")
	assert.InDelta(t, names-most, now[`penstock_blocked_total{resource="(other)"}`], 0)
	assert.InDelta(t, names, now.sum("penstock_rule_blocked_total"), 0, "no refusal is lost")
	assert.Len(t, now.of("penstock_rule_blocked_total"), most+1)
	assert.InDelta(t, names-most, now[`penstock_rule_blocked_total{kind="flow",resource="(other)",rule="(other)"}`], 0)
	assert.InDelta(t, names-most, now["penstock_resources_without_series"], 0)
}

func TestResourceEvictedBetweenScrapesKeepsCounting(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 1})
	s.calls("r", 5)
	s.calls("s", 50)
	before := scrape(t, collector)
	s.clock.Advance(2 * time.Minute)
	s.calls("other, to have the engine look for idle ones", 1)
	s.calls("r", 2)
	s.calls("s", 20)
	now := scrape(t, collector)
	assertGrowth(t, before, now)
	assert.InDelta(t, 7, now[passed("r")], 0)
	assert.InDelta(t, 71, now[passed("(other)")], 0)
}

func TestOverflowOfTheEngineIsCountedOnce(t *testing.T) {
	s := newService(t, core.Config{MaxResources: 4})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 2})
	for i := range 10 {
		s.calls(fmt.Sprint(i), 1)
	}
	now := scrape(t, collector)
	require.Len(t, now.of(passedTotal), 3)
	assert.InDelta(t, 8, now[passed("(other)")], 0)

	s.clock.Advance(2 * time.Minute)
	now = scrape(t, collector)
	assert.Equal(t, []string{passed("(other)")}, now.of(passedTotal), "and all others are forgotten")
	for i := range 10 {
		s.calls(fmt.Sprint(i), 1)
	}
	now = scrape(t, collector)
	assert.InDelta(t, 8+8, now[passed("(other)")], 0)
	assert.InDelta(t, 18, now.sum(passedTotal), 0)
}

func TestSeriesOfARemovedRuleEnd(t *testing.T) {
	qps, paid := flow.Rule{Name: "qps", Resource: "r", Limit: 1}, flow.Rule{Name: "paid", Resource: "r", Limit: 100}
	s := newService(t, core.Config{}, qps, paid)
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	s.calls("r", 5)
	now := scrape(t, collector)
	assert.InDelta(t, 4, now[`penstock_rule_blocked_total{kind="flow",resource="r",rule="qps"}`], 0)
	assert.Len(t, now.of("penstock_rule_blocked_total"), 2)

	s.load(t, paid)
	now = scrape(t, collector)
	assert.InDelta(t, 4, now[`penstock_blocked_total{resource="r"}`], 0)
	assert.Equal(t, []string{`penstock_rule_blocked_total{kind="flow",resource="r",rule="paid"}`}, now.of("penstock_rule_blocked_total"))
	assert.Len(t, now.of("penstock_flow_ceiling_tokens_per_second"), 1)
}

func TestReplacedRuleKeepsCounting(t *testing.T) {
	const refused = `penstock_rule_blocked_total{kind="flow",resource="r",rule="r"}`
	s := newService(t, core.Config{}, flow.Rule{Resource: "r", Limit: 0})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	s.calls("r", 5)
	require.InDelta(t, 5, scrape(t, collector)[refused], 0)
	s.load(t, flow.Rule{Resource: "r", Limit: 0, Algorithm: flow.Throttle}) // has counts of its own
	s.calls("r", 2)
	assert.InDelta(t, 7, scrape(t, collector)[refused], 0)
}

func TestInvalidUTF8InNamesIsReplacedAndSharesSeries(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	s.load(t, flow.Rule{Name: "closed", Match: "a*", Limit: 0})
	s.calls("a\xfe", 2)
	s.calls("a\xff", 3)
	require.NoError(t, s.Follow(t.Context(), source{name: "etcd\xfe"}))
	require.NoError(t, s.Follow(t.Context(), source{name: "etcd\xff"}))
	require.NoError(t, s.Ready(t.Context()))
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	before := scrape(t, collector)
	assert.InDelta(t, 5, before[`penstock_blocked_total{resource="a�"}`], 0)
	assert.InDelta(t, 5, before[`penstock_rule_blocked_total{kind="flow",resource="a�",rule="closed"}`], 0)
	assert.Contains(t, before, `penstock_source_connected{source="etcd�"}`)

	s.clock.Advance(50 * time.Second)
	s.calls("a\xff", 1)
	scrape(t, collector)
	s.clock.Advance(50 * time.Second) // evicts only the first of the two
	now := scrape(t, collector)
	assertGrowth(t, before, now)
	assert.InDelta(t, 6, now[`penstock_blocked_total{resource="a�"}`], 0)
}

func TestResourceNamedLikeTheOverflowIsCountedInIt(t *testing.T) {
	s := newService(t, core.Config{})
	defer s.Close()
	s.calls("(other)", 3)
	s.calls("a", 1)
	s.calls("b", 1)
	now := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 1}))
	assert.InDelta(t, 3+1, now[passed("(other)")], 0)
	assert.InDelta(t, 1, now[passed("a")], 0)
}

func TestEstimatedBucketsStayInOrder(t *testing.T) {
	// The engine has one bucket from 98,304 ns to 102,400 ns. Of 5 calls in it,
	// it estimates 2 and 3 up to these bounds; of 6 calls 3 and 3.
	const bucket = 98_304
	s := newService(t, core.Config{})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{
		MaxResources: 1, Buckets: []time.Duration{bucket + 2048, bucket + 2458},
	})
	s.calls("a", 1)
	for range 5 {
		s.call("b", bucket, nil)
	}
	assertOrderedHistograms(t, scrape(t, collector))
	s.load(t, flow.Rule{Resource: "b", Limit: 100}) // has it counted apart from now on
	s.call("b", bucket, nil)
	now := scrape(t, collector)
	require.Contains(t, now, `penstock_response_time_seconds_count{resource="b"}`)
	assertOrderedHistograms(t, now)
}

// For any sequence of calls, rule changes and scrapes: every call is counted once, no
// counter goes down, series are bounded and histograms are in order.
func TestProperty_SeriesAreExactBoundedAndMonotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 2
		s := newService(t, core.Config{MaxResources: rapid.IntRange(1, 6).Draw(t, "engine's MaxResources")})
		defer s.Close()
		// Bounds that are closer together than the engine's buckets.
		buckets := []time.Duration{1000, 1010, 1020, 1030, 1040, time.Millisecond}
		collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{
			MaxResources: most, Buckets: buckets,
			Histograms: rapid.SampledFrom(slices.Sorted(maps.Values(histogramsByName()))).Draw(t, "histograms"),
		})
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "\xfe", "\xff"})
		calls, before := 0, scrape(t, collector)
		var counted float64
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				name, took := names.Draw(t, "name"), time.Duration(rapid.IntRange(900, 1100).Draw(t, "ns"))
				for range rapid.IntRange(1, 9).Draw(t, "times") {
					if s.call(name, took, nil) {
						calls++
					}
				}
			},
			"wait": func(t *rapid.T) { s.clock.Advance(time.Duration(rapid.IntRange(1, 50).Draw(t, "s")) * time.Second) },
			"load": func(t *rapid.T) {
				var limits []flow.Rule
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "ruled") {
					limits = append(limits, flow.Rule{Resource: name, Limit: 3})
				}
				s.load(t, limits...)
			},
			"": func(t *rapid.T) {
				now := scrape(t, collector)
				assertGrowth(t, before, now)
				for _, key := range now.of(passedTotal) {
					counted += now[key] - before[key] // the increase, as Prometheus computes it
				}
				require.InDelta(t, calls, counted, 0)
				require.LessOrEqual(t, len(now.of(passedTotal)), most+1)
				assertOrderedHistograms(t, now)
				before = now
			},
		})
	})
}

func assertOrderedHistograms(t assert.TestingT, s series) {
	const name = "penstock_response_time_seconds"
	for _, count := range s.of(name + "_count") {
		labels := strings.TrimPrefix(count, name+"_count")
		var upTo float64
		for _, bucket := range s.of(name + "_bucket") {
			if strings.HasPrefix(bucket, name+"_bucket"+labels+" ") {
				assert.GreaterOrEqual(t, s[bucket], upTo)
				upTo = s[bucket]
			}
		}
		assert.GreaterOrEqual(t, s[count], upTo)
		native, inBuckets := false, 0.0
		for key, n := range s {
			if strings.HasPrefix(key, name+"_native_bucket"+labels+" ") {
				native = true
				inBuckets += n
			}
		}
		assert.True(t, !native || inBuckets == s[count], "every call is in one bucket")
		assert.InDelta(t, s[passedTotal+labels], s[count], 0, "all calls have ended")
	}
}

func TestSeriesAreBoundedForNamesThatMatchAPattern(t *testing.T) {
	const most = 20
	s := newService(t, core.Config{MaxResources: 100}, flow.Rule{Name: "each", Match: "*", Limit: 1})
	defer s.Close()
	for i := range 1000 {
		s.calls(fmt.Sprintf("name %05d", i), 2)
	}
	s.calls("\xff", 1)
	s.calls("\xfe", 1)
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: most})
	now := scrape(t, collector)
	assert.Len(t, now.of(passedTotal), most+1)
	assert.Len(t, now.of("penstock_flow_ceiling_tokens_per_second"), most+1)
	assert.InDelta(t, 100+1, now.sum(passedTotal), 0, "one for each name with a limit of its own, one for the others together")
	assert.InDelta(t, 2002-101, now.sum("penstock_rule_blocked_total"), 0)
}

func TestNamesWithTheSameLabelDoNotFailAScrape(t *testing.T) {
	s := newService(t, core.Config{}, flow.Rule{Name: "each", Match: "*", Limit: 1})
	defer s.Close()
	s.calls("\xff", 1)
	s.calls("\xfe", 1)
	now := scrape(t, penstockprom.NewCollector(s.Engine, penstockprom.Options{}))
	assert.InDelta(t, 2, now[passed("\uFFFD")], 0)
}

func TestShadowRulesCountWhatTheyWouldHaveBlocked(t *testing.T) {
	rule := flow.Rule{Name: "try", Resource: "orders", Limit: 1, Shadow: true}
	s := newService(t, core.Config{}, rule)
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{})
	const labels = `{kind="flow",resource="orders",rule="try"}`
	now := scrape(t, collector)
	assert.Contains(t, now, "penstock_rule_shadow_blocked_total"+labels)
	s.calls("orders", 3)
	now = scrape(t, collector)
	assert.InDelta(t, 2, now["penstock_rule_shadow_blocked_total"+labels], 0)
	assert.InDelta(t, 0, now["penstock_rule_blocked_total"+labels], 0)
	assert.InDelta(t, 3, now[passed("orders")], 0)

	rule.Shadow = false
	s.load(t, rule)
	s.calls("orders", 3)
	now = scrape(t, collector)
	assert.InDelta(t, 2, now["penstock_rule_shadow_blocked_total"+labels], 0)
	assert.InDelta(t, 3, now["penstock_rule_blocked_total"+labels], 0)
}
