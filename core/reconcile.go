package core

import (
	"log/slog"

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
	if err != nil { // cannot be: choose sees to it that no two names are the same
		e.log.Error("penstock: rules could not be merged, those in force stay", slog.Any("error", err))
		return outcome{}
	}
	result := outcome{swap: e.swap(all)}
	for _, c := range choices {
		d := c.document
		if c.held {
			d.apply(e.clock.Now())
		} else if !d.reported {
			d.reported = true
			result.rejections = append(result.rejections, Rejection{d.source, d.name, d.held.revision, d.problem})
		}
	}
	return result
}
