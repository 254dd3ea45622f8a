package penstockprom

import (
	"slices"

	"github.com/penstock-go/penstock/core"
)

// The indices of counters.
const (
	responseTime = iota // nanoseconds; may wrap around
	waitTime            // nanoseconds; may wrap around
	passed              // calls, as are the following
	blocked
	failed
	waited
	completed // as many as are in the histogram
	passedTokens
	blockedTokens
	counterCount
)

// counters are those of a resource.
type counters [counterCount]uint64

// refusalKey identifies a counter of refusals by the labels of a rule. Calls that a shadow
// rule would have refused are counted apart.
type refusalKey struct {
	kind, rule string
	shadow     bool
}

type refusals struct {
	refusalKey
	ofOne bool // by a rule that is for one resource, which it names
	count uint64
}

// keyIn returns the key of the counter in the series of a resource. In those of resources
// without series of their own, rules that are for one resource are summed up, too.
func (r *refusals) keyIn(resource string) refusalKey {
	key := r.refusalKey
	if resource == core.Overflow && r.ofOne {
		key.rule = core.Overflow
	}
	return key
}

// sample is what a resource has counted at one scrape. The zero value is that of a resource
// before its first call.
type sample struct {
	counters
	times    buckets
	refusals []refusals
}

// resourceState is what the accumulator knows of a resource of the engine.
type resourceState struct {
	now, earlier sample // at this scrape and the one before
	scrape       uint64 // the last one at which the engine knew the resource

	named    bool            // by a rule in force
	separate bool            // it has its own series
	chosen   bool            // to have them at this scrape
	series   *resourceSeries // that the last scrape added it to
}

// take takes the sample of another scrape.
func (r *resourceState) take(s *core.ResourceSnapshot, layout *histogramLayout) {
	r.now, r.earlier = r.earlier, r.now
	now := &r.now
	t := &s.Totals
	now.counters = counters{
		responseTime: uint64(t.ResponseTime), waitTime: uint64(t.WaitTime),
		passed: t.Passed, blocked: t.Blocked, failed: t.Failed, waited: t.Waited,
		completed:    t.ResponseTimes.Count, // agrees with the histogram
		passedTokens: t.PassedTokens, blockedTokens: t.BlockedTokens,
	}
	now.times = layout.read(now.times[:0], t.ResponseTimes)
	now.refusals = now.refusals[:0]
	r.named = s.Named()
	for i := range s.Rules {
		of := &s.Rules[i]
		by := refusals{refusalKey{kind: label(string(of.Kind)), rule: label(of.Name)}, of.Rule.Target().Resource != "", of.Blocked}
		now.count(by)
		if of.WouldBlock > 0 || of.Shadow { // the series of a shadow rule starts at 0
			by.shadow, by.count = true, of.WouldBlock
			now.count(by)
		}
	}
	if now.restarted(&r.earlier) {
		r.earlier.counters, r.earlier.times = counters{}, r.earlier.times[:0]
	}
}

// count counts refusals. Of two rules whose labels are the same, the sum is exposed.
func (s *sample) count(more refusals) {
	i := s.indexOf(more.refusalKey, len(s.refusals)-1)
	if i < 0 {
		s.refusals = append(s.refusals, more)
		return
	}
	s.refusals[i].count += more.count
}

// indexOf returns where a counter is, -1 if there is none. It looks at a likely place first.
func (s *sample) indexOf(by refusalKey, likely int) int {
	if likely >= 0 && likely < len(s.refusals) && s.refusals[likely].refusalKey == by {
		return likely
	}
	return slices.IndexFunc(s.refusals, func(r refusals) bool { return r.refusalKey == by })
}

// restarted says whether the engine has evicted the resource since an earlier sample, and
// its counters have restarted.
func (s *sample) restarted(earlier *sample) bool {
	for i := passed; i < counterCount; i++ {
		if s.counters[i] < earlier.counters[i] {
			return true
		}
	}
	return s.times.fellBelow(earlier.times)
}
