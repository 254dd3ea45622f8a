package penstockprom

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// refusalKey identifies a counter of refusals by the labels of a rule. Calls that a shadow rule would have refused are counted apart.
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
		refusals: make(map[refusalKey]uint64, len(s.Rules)),
		inFlight: s.InFlight,
		waiting:  s.Waiting,
	}
	for i := range s.Rules {
		of := &s.Rules[i]
		by := refusalKey{kind: label(string(of.Kind)), rule: label(of.Name)}
		r.refusals[by] += of.Blocked
		if by.shadow = true; of.WouldBlock > 0 || of.Shadow { // the series of a shadow rule starts at 0
			r.refusals[by] += of.WouldBlock
		}
		r.named = r.named || of.Rule.Target().Resource != "" // not by a pattern: the number of its names is unbounded
	}
	return r
}
