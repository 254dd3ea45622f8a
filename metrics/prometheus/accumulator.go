package penstockprom

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
)

// accumulator accumulates the counters of the engine's resources, which are created and
// evicted, into monotonic counters of a bounded number of series. At each scrape it
// adds the increase since the previous one, so every event is counted once and no
// counter goes down. Resources without series of their own are summed up as
// [core.Overflow], like those beyond the engine's own bound.
type accumulator struct {
	maxResources int // resources with their own series that no rule names
	buckets      []time.Duration

	previous map[string]*sample         // samples of the previous scrape, by resource
	separate map[string]bool            // resources that had their own series
	series   map[string]*resourceSeries // series by label
}

func newAccumulator(maxResources int, buckets []time.Duration) accumulator {
	return accumulator{maxResources: maxResources, buckets: buckets, series: make(map[string]*resourceSeries)}
}

// update adds a snapshot of the resources.
func (a *accumulator) update(resources []core.ResourceSnapshot) {
	now := make(map[string]*sample, len(resources))
	for i := range resources {
		now[resources[i].Name] = takeSample(&resources[i], a.buckets)
	}
	separate := a.chooseSeparate(now)
	for _, s := range a.series {
		s.startScrape()
	}
	for name, r := range now {
		key := core.Overflow
		if separate[name] {
			key = label(name)
		}
		if a.series[key] == nil {
			a.series[key] = newResourceSeries(len(a.buckets))
		}
		a.series[key].add(r, a.previous[name])
	}
	maps.DeleteFunc(a.series, func(key string, s *resourceSeries) bool { return !s.present && key != core.Overflow })
	a.previous, a.separate = now, separate
}

// chooseSeparate returns the resources with series of their own: all that rules name and, up
// to the bound, first those that had series before, then others.
func (a *accumulator) chooseSeparate(now map[string]*sample) map[string]bool {
	separate := make(map[string]bool)
	names := slices.Sorted(maps.Keys(now))
	for _, name := range names {
		if now[name].named && name != core.Overflow {
			separate[name] = true
		}
	}
	remaining := a.maxResources
	for _, hadSeries := range []bool{true, false} {
		for _, name := range names {
			if remaining > 0 && !separate[name] && a.separate[name] == hadSeries && name != core.Overflow {
				separate[name] = true
				remaining--
			}
		}
	}
	return separate
}

// label converts a name to a label value: it replaces invalid UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
