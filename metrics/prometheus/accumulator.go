package penstockprom

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
)

// accumulator accumulates the counters of the engine's resources, which are created and
// evicted, into monotonic counters of a bounded number of series. At each scrape it
// adds the increase since the previous one, so every event is counted once and no
// counter goes down. Resources without series of their own are summed up as
// [core.Overflow], like those beyond the engine's own bound.
type accumulator struct {
	families     *families
	maxResources int // resources with their own series
	layout       histogramLayout

	scrape    uint64                     // how many there were
	resources map[string]*resourceState  // that the engine knew at the last one
	inOrder   []*resourceState           // of the resources of this scrape
	series    map[string]*resourceSeries // by label
	byLabel   []*resourceSeries          // the same in the order of their labels
	summedUp  int                        // resources without series of their own
	overflow  uint64                     // calls of names beyond the engine's own bound
}

func newAccumulator(f *families, options Options) accumulator {
	return accumulator{
		families: f, maxResources: options.MaxResources, layout: newHistogramLayout(options),
		resources: make(map[string]*resourceState), series: make(map[string]*resourceSeries),
	}
}

// update adds a snapshot of the resources, which are ordered by name.
func (a *accumulator) update(resources []core.ResourceSnapshot) {
	a.scrape++
	a.inOrder = a.inOrder[:0]
	for i := range resources {
		r := a.resources[resources[i].Name]
		if r == nil {
			r = new(resourceState)
			a.resources[resources[i].Name] = r
		}
		r.scrape = a.scrape
		r.take(&resources[i], &a.layout)
		a.inOrder = append(a.inOrder, r)
	}
	maps.DeleteFunc(a.resources, func(_ string, r *resourceState) bool { return r.scrape != a.scrape })
	a.chooseSeparate(resources)
	for i, r := range a.inOrder {
		name := core.Overflow
		if r.separate {
			name = label(resources[i].Name)
		}
		r.series = a.seriesOf(name)
		r.series.add(a.families, &resources[i], r)
		if resources[i].Name == core.Overflow {
			for _, of := range []int{passed, blocked} {
				a.overflow += r.now.counters[of] - r.earlier.counters[of]
			}
		}
	}
	a.endScrape()
}

// endScrape drops the series to which nothing was added, except those of [core.Overflow], and
// brings the others into their order.
func (a *accumulator) endScrape() {
	ordered := len(a.byLabel) == len(a.series)
	for _, s := range a.byLabel {
		if s.scrape != a.scrape {
			s.startScrape(a.scrape)
			if s.name != core.Overflow {
				delete(a.series, s.name)
				ordered = false
			}
		}
		s.endScrape()
	}
	if !ordered {
		a.byLabel = slices.SortedFunc(maps.Values(a.series), func(x, y *resourceSeries) int {
			return cmp.Compare(x.name, y.name)
		})
	}
}

// chooseSeparate chooses the resources with series of their own, up to the bound: those that
// rules name before others, and of both first those that had series before.
func (a *accumulator) chooseSeparate(resources []core.ResourceSnapshot) {
	remaining := a.maxResources
	for _, named := range []bool{true, false} {
		for _, hadSeries := range []bool{true, false} {
			for i, r := range a.inOrder {
				if remaining > 0 && r.named == named && r.separate == hadSeries && resources[i].Name != core.Overflow {
					r.chosen = true
					remaining--
				}
			}
		}
	}
	a.summedUp = 0
	for i, r := range a.inOrder {
		r.separate, r.chosen = r.chosen, false
		if !r.separate && resources[i].Name != core.Overflow {
			a.summedUp++
		}
	}
}

// seriesOf returns the series of a label, ready for this scrape.
func (a *accumulator) seriesOf(name string) *resourceSeries {
	s := a.series[name]
	if s == nil {
		s = newResourceSeries(a.families, name)
		a.series[name] = s
	}
	if s.scrape != a.scrape {
		s.startScrape(a.scrape)
	}
	return s
}

// label converts a name to a label value: it replaces invalid UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
