package penstockprom

// resourceSeries is the series of one resource, or of several resources together.
type resourceSeries struct {
	counts            counts
	inFlight, waiting int64

	refusals         map[refusalKey]uint64 // of rules in force
	previousRefusals map[refusalKey]uint64 // refusals at the previous scrape
	present          bool                  // a resource was added at this scrape
}

func newResourceSeries(buckets int) *resourceSeries {
	return &resourceSeries{counts: make(counts, firstBucket+buckets), refusals: make(map[refusalKey]uint64)}
}

// startScrape prepares the series for another scrape: it resets the gauges, and drops the
// rules that are not added again.
func (s *resourceSeries) startScrape() {
	s.inFlight, s.waiting, s.present = 0, 0, false
	s.previousRefusals, s.refusals = s.refusals, make(map[refusalKey]uint64)
}

// add adds the gauges of a resource, and the increase of its counters since its
// previous sample, nil if there is none.
func (s *resourceSeries) add(now, earlier *sample) {
	if earlier == nil {
		earlier = new(sample)
	}
	s.present = true
	s.inFlight += now.inFlight
	s.waiting += now.waiting
	s.counts.add(now.counts.since(earlier.counts))
	for by, count := range now.refusals {
		if _, booked := s.refusals[by]; !booked {
			s.refusals[by] = s.previousRefusals[by]
		}
		if before := earlier.refusals[by]; before <= count { // otherwise the rule was replaced and its counter reset
			count -= before
		}
		s.refusals[by] += count
	}
}
