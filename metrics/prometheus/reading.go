package penstockprom

import (
	"time"

	"github.com/penstock-go/penstock/core"
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
		refusals: make(map[refuser]uint64, len(s.Rules)),
		inFlight: s.InFlight,
		waiting:  s.Waiting,
	}
	for i := range s.Rules {
		of := &s.Rules[i]
		by := refuser{kind: label(string(of.Kind)), rule: label(of.Name)}
		r.refusals[by] += of.Blocked
		if by.shadow = true; of.WouldBlock > 0 || of.Shadow { // a shadow is seen before it refuses
			r.refusals[by] += of.WouldBlock
		}
		r.ruled = r.ruled || of.Rule.Target().Resource != "" // names that only match a pattern have no end
	}
	return r
}
