package penstockprom

import (
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// refuser is a rule, or a check of the user's own, by its labels: when it refuses
// calls and, apart from that, when it only would have.
type refuser struct {
	kind, rule string
	shadow     bool
}

// reading is what the engine tells of a resource at one scrape.
type reading struct {
	counts            counts
	refusals          map[refuser]uint64
	inFlight, waiting int64
	ruled             bool // named by a rule in force
}

func read(s *core.ResourceSnapshot, buckets []time.Duration) *reading {
	r := &reading{
		counts:   countsOf(&s.Totals, buckets),
		refusals: make(map[refuser]uint64, len(s.Refusals)),
		inFlight: s.InFlight,
		waiting:  s.Waiting,
	}
	for _, refused := range s.Refusals {
		by := refuser{kind: label(string(refused.Kind)), rule: label(refused.Rule)}
		r.refusals[by] += refused.Count
		if by.shadow = true; refused.WouldBlock > 0 {
			r.refusals[by] += refused.WouldBlock
		}
	}
	for i := range s.Flow {
		rule := &s.Flow[i].Rule
		r.ruled = r.ruled || rule.Resource != "" // names that only match a pattern have no end
		if rule.Shadow {
			r.refusals[refuser{string(rules.KindFlow), label(rule.Name), true}] += 0 // seen before it happens
		}
	}
	return r
}
