package penstockprom

import (
	"maps"

	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-go/penstock/core"
)

// resourceSeries is the series of one resource, or of several resources together.
type resourceSeries struct {
	labels            []*dto.LabelPair
	counters          counters
	times             buckets
	inFlight, waiting int64

	refusals map[refusalKey]*refusalSeries // of rules in force
	present  bool                          // a resource was added at this scrape
}

// refusalSeries counts the refusals of a rule on a resource.
type refusalSeries struct {
	labels  []*dto.LabelPair
	count   uint64
	present bool // the rule was added at this scrape
}

func newResourceSeries(f *families, name string) *resourceSeries {
	return &resourceSeries{labels: labels(f.passed, name), refusals: make(map[refusalKey]*refusalSeries)}
}

// startScrape prepares the series for another scrape: it resets the gauges.
func (s *resourceSeries) startScrape() {
	s.inFlight, s.waiting, s.present = 0, 0, false
	for _, r := range s.refusals {
		r.present = false
	}
}

// add adds the gauges of a resource, and the increase of its counters.
func (s *resourceSeries) add(f *families, name string, of *core.ResourceSnapshot, r *resourceState) {
	s.present = true
	s.inFlight += of.InFlight
	s.waiting += of.Waiting
	for i := range s.counters {
		s.counters[i] += r.now.counters[i] - r.earlier.counters[i]
	}
	s.times.add(r.now.times, r.earlier.times)
	for i := range r.now.refusals {
		now := &r.now.refusals[i]
		key := now.keyIn(name)
		series := s.refusals[key]
		if series == nil {
			series = &refusalSeries{labels: labels(f.ruleBlocked, name, key.kind, key.rule)}
			s.refusals[key] = series
		}
		series.present = true
		series.count += now.count
		if j := r.earlier.indexOf(now.refusalKey, i); j >= 0 && r.earlier.refusals[j].count <= now.count {
			series.count -= r.earlier.refusals[j].count // otherwise the rule was replaced and its counter reset
		}
	}
}

// endScrape drops the rules that were not added.
func (s *resourceSeries) endScrape() {
	maps.DeleteFunc(s.refusals, func(_ refusalKey, r *refusalSeries) bool { return !r.present })
}
