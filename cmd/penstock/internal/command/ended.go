package command

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
)

// endedRules returns a warning for each rule that has no effect any more.
func endedRules(set rules.Set, now time.Time) []string {
	var warnings []string
	for r := range set.All() {
		if ends := r.Ends(); !ends.IsZero() && !now.Before(ends) {
			warnings = append(warnings, fmt.Sprintf("%s rule %s has ended at %s and does nothing: remove it",
				r.Key().Kind, wording.Quote(r.Key().Name), ends.UTC().Format(time.RFC3339)))
		}
	}
	return warnings
}
