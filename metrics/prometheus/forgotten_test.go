package penstockprom_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
)

func TestResourcesForgottenBetweenScrapesAreCounted(t *testing.T) {
	t.Parallel()
	for name, histograms := range histogramsByName() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, core.Config{}, flow.Rule{Name: "each", Match: "b*", Limit: 2})
			defer s.Close()
			collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{Histograms: histograms})
			s.call("a", time.Millisecond, nil)
			before := scrape(t, collector)
			for range 2 { // ten minutes without a scrape
				s.call("a", 10*time.Millisecond, nil)
				s.call("a", 30*time.Millisecond, assert.AnError)
				s.calls("b", 5) // three of them are refused
				s.clock.Advance(5 * time.Minute)
			}
			s.calls("c", 1) // has the engine forget the others
			now := scrape(t, collector)
			assert.Equal(t, []string{passed("(other)"), passed("c")}, now.of(passedTotal))
			assert.InDelta(t, 1+4+4+1, before.sum(passedTotal)+now.sum(passedTotal), 0)
			assert.InDelta(t, 6, now.sum("penstock_blocked_total"), 0)
			assert.InDelta(t, 10, now.sum("penstock_passed_tokens_total")+before.sum("penstock_passed_tokens_total"), 0)
			assert.InDelta(t, 2, now.sum("penstock_failed_total"), 0)
			assert.InDelta(t, 8, now[`penstock_response_time_seconds_count{resource="(other)"}`], 0)
			assert.InDelta(t, 0.08, now[`penstock_response_time_seconds_sum{resource="(other)"}`], 1e-9)
			assertOrderedHistograms(t, now)
			assert.Zero(t, now["penstock_resources_without_series"], "the engine knows none of them")
			assert.Equal(t, now, scrape(t, collector), "nothing is counted twice")
		})
	}
}

// Callers come and go under names of their own, while scrapes happen and the engine forgets names:
// in the end, every call was counted once.
func TestConcurrentCallsOfForgottenResourcesAreCountedOnce(t *testing.T) {
	t.Parallel()
	const callers, names, callsEach = 4, 50, 6
	s := newService(t, core.Config{MaxResources: 100}, flow.Rule{Name: "each", Match: "*", Limit: 4})
	defer s.Close()
	collector := penstockprom.NewCollector(s.Engine, penstockprom.Options{MaxResources: 3, Histograms: penstockprom.NoHistograms})
	var increase counted
	var calls [callers]calls
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for i := range names {
				calls[caller].make(s, fmt.Sprint("resource ", i, " of ", caller%2), callsEach)
				s.clock.Advance(10 * time.Second)
			}
		})
	}
	done := make(chan struct{})
	go func() { calling.Wait(); close(done) }()
	for scraping := true; scraping; {
		select {
		case <-done:
			scraping = false
		default:
		}
		increase.add(gatherSeries(t, collector))
	}
	// A scrape may have seen a call pass that was taken back, for its resource was just being
	// forgotten: it counts in place of one of these.
	const more = 2 * callers
	var want [2]int
	for i := range more {
		calls[0].make(s, fmt.Sprint("last ", i), 1)
	}
	s.clock.Advance(2 * time.Minute) // forgets them all
	increase.add(gatherSeries(t, collector))
	for _, c := range calls {
		want[0] += c.passed
		want[1] += c.blocked
	}
	assert.Equal(t, callers*names*callsEach+more, want[0]+want[1])
	assert.InDelta(t, want[0], increase.sum(passedTotal), 0)
	assert.InDelta(t, want[1], increase.sum("penstock_blocked_total"), 0)
	assert.InDelta(t, want[0], increase.sum("penstock_response_time_seconds_count"), 0, "all calls have ended")
	assert.Equal(t, []string{passed("(other)")}, increase.last.of(passedTotal), "all others are forgotten")
}

// calls are those of one caller.
type calls struct{ passed, blocked int }

func (c *calls) make(s service, resource string, n int) {
	for range n {
		guard, err := s.Entry(context.Background(), resource)
		if err != nil {
			c.blocked++
			continue
		}
		c.passed++
		guard.Exit()
	}
}

func gatherSeries(t *testing.T, collector *penstockprom.Collector) series {
	families, err := collector.Gather()
	require.NoError(t, err)
	return seriesOf(families)
}

// counted sums up by how much counters rise, as Prometheus does.
type counted struct {
	increase, last series
}

func (c *counted) add(now series) {
	if c.increase == nil {
		c.increase = make(series)
	}
	for key, value := range now {
		c.increase[key] += value - c.last[key]
	}
	c.last = now
}

func (c *counted) sum(name string) float64 { return c.increase.sum(name) }
