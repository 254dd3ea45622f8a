package penstockprom

import (
	"maps"

	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-go/penstock/core"
)

// resourceSeries is the series of one resource, or of several resources together.
type resourceSeries struct {
	name              string // the label
	labels            []*dto.LabelPair
	counters          counters
	times             buckets
	inFlight, waiting int64

	refusals map[refusalKey]*refusalSeries // of rules in force
	present  int                           // how many of them were added to at this scrape
	scrape   uint64                        // the last one for which the series was prepared

	showsRules bool // the state of the rules on a resource was exposed at this scrape
}

// refusalSeries counts the refusals of a rule on a resource.
type refusalSeries struct {
	labels []*dto.LabelPair
	count  uint64
	scrape uint64 // the last one at which a resource had the rule
}

func newResourceSeries(f *families, name string) *resourceSeries {
	return &resourceSeries{name: name, labels: labels(f.passed, name), refusals: make(map[refusalKey]*refusalSeries)}
}

// startScrape prepares the series for another scrape: it resets the gauges.
func (s *resourceSeries) startScrape(scrape uint64) {
	s.inFlight, s.waiting, s.present, s.scrape, s.showsRules = 0, 0, 0, scrape, false
}

// add adds the gauges of a resource, and the increase of its counters.
func (s *resourceSeries) add(f *families, of *core.ResourceSnapshot, r *resourceState) {
	s.inFlight += of.InFlight
	s.waiting += of.Waiting
	for i := range s.counters {
		s.counters[i] += r.now.counters[i] - r.earlier.counters[i]
	}
	s.times.add(r.now.times, r.earlier.times)
	for i := range r.now.refusals {
		now := &r.now.refusals[i]
		series := s.refusalsOf(f, now.keyIn(s.name))
		if series.scrape != s.scrape {
			series.scrape = s.scrape
			s.present++
		}
		series.count += now.count
		if j := r.earlier.indexOf(now.refusalKey, i); j >= 0 && r.earlier.refusals[j].count <= now.count {
			series.count -= r.earlier.refusals[j].count // otherwise the rule was replaced and its counter reset
		}
	}
}

func (s *resourceSeries) refusalsOf(f *families, key refusalKey) *refusalSeries {
	series := s.refusals[key]
	if series == nil {
		series = &refusalSeries{labels: labels(f.ruleBlocked, s.name, key.kind, key.rule)}
		s.refusals[key] = series
	}
	return series
}

// endScrape drops the rules that no resource has any more.
func (s *resourceSeries) endScrape() {
	if s.present < len(s.refusals) {
		maps.DeleteFunc(s.refusals, func(_ refusalKey, r *refusalSeries) bool { return r.scrape != s.scrape })
	}
}
