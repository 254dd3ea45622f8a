package penstockprom

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// refuser is a rule, or a check of the user's own, by its labels.
type refuser struct{ kind, rule string }

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
		r.refusals[refuser{label(string(refused.Kind)), label(refused.Rule)}] += refused.Count
		r.ruled = r.ruled || refused.Kind != core.KindCheck
	}
	return r
}
