package flow

import (
	"math"

	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validateCalendar judges a window of the calendar, and what goes with it. It says whether the
// rule has one.
func (r *Rule) validateCalendar(f *rule.Faults) (has bool) {
	if !settings.ValidateCalendar(f, r.Window, r.Calendar) {
		return false
	}
	if r.Algorithm != FixedWindow {
		f.Add("algorithm", "is %q, but window is %v, which is a window of the calendar: remove algorithm, or set it to %q",
			r.Algorithm, r.Calendar.Period, FixedWindow)
	}
	if r.Limit != math.Trunc(r.Limit) {
		f.Add("limit", "is %v: must be a whole number of tokens for a window of the calendar", r.Limit)
	}
	if r.WarmUp != (WarmUp{}) {
		f.Add("warmUp.period", "has no effect on a window of the calendar: remove it, or write a rule of its own")
	}
	return true
}
