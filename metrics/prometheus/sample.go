package penstockprom

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// refusalKey identifies a counter of refusals by the labels of a rule or of a check of
// the user's own. Calls that a shadow rule would have refused are counted apart.
type refusalKey struct {
	kind, rule string
	shadow     bool
}

// sample is the sample of one resource at one scrape.
type sample struct {
	counts            counts
	refusals          map[refusalKey]uint64
	inFlight, waiting int64
	named             bool // named by a rule in force
}

func takeSample(s *core.ResourceSnapshot, buckets []time.Duration) *sample {
	r := &sample{
		counts:   countsOf(&s.Totals, buckets),
		refusals: make(map[refusalKey]uint64, len(s.Refusals)),
		inFlight: s.InFlight,
		waiting:  s.Waiting,
	}
	for _, refused := range s.Refusals {
		by := refusalKey{kind: label(string(refused.Kind)), rule: label(refused.Rule)}
		r.refusals[by] += refused.Count
		if by.shadow = true; refused.WouldBlock > 0 {
			r.refusals[by] += refused.WouldBlock
		}
	}
	for i := range s.Flow {
		rule := &s.Flow[i].Rule
		r.named = r.named || rule.Resource != "" // not by a pattern: the number of its names is unbounded
		if rule.Shadow {
			r.refusals[refusalKey{string(rules.KindFlow), label(rule.Name), true}] += 0 // makes the series start at 0
		}
	}
	return r
}
