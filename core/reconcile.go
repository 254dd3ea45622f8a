package core

import (
	"fmt"

	"github.com/penstock-go/penstock/rules"
)

// outcome is what came of putting rules in force.
type outcome struct {
	swap       Swap        // the zero Swap if nothing changed
	rejections []Rejection // those that were not reported before
}

// reconcile puts in force the code's rules and what the sources hold, as far as
// it can be. The caller holds rules.mu and has seen that the engine is open.
func (e *Engine) reconcile() outcome {
	choices := choose(e.rules.code, e.sources.documents())
	sets := make([]rules.Set, 1, 1+len(choices))
	sets[0] = e.rules.code
	for _, c := range choices {
		sets = append(sets, c.version.rules)
	}
	all, err := rules.Merge(sets...)
	if err != nil {
		// choose has seen to it that no two names are the same.
		panic(fmt.Sprintf("core: documents clash after all: %v", err))
	}
	outcome := outcome{swap: e.swap(all)}
	for _, c := range choices {
		d := c.document
		if c.held {
			d.apply(e.clock.Now())
		} else if !d.reported {
			d.reported = true
			outcome.rejections = append(outcome.rejections, Rejection{d.source, d.name, d.held.revision, d.problem})
		}
	}
	return outcome
}
