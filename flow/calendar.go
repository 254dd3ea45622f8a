package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/calendar"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/openwindow"
	"github.com/penstock-go/penstock/rule"
)

// validateCalendar judges a window of the calendar, and what goes with it. It says whether the
// rule has one.
func (r *Rule) validateCalendar(f *rule.Faults) (has bool) {
	if !f.ValidateCalendar(r.Window, r.Calendar) {
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

// calendar returns the calendar that the windows of the rule follow, nil if they are measured. A
// fixed window that is long follows it, too, unless its limit rises or is carried over.
func (r *Rule) calendar() *calendar.Calendar {
	isLong := r.Algorithm == FixedWindow && r.Window >= openwindow.Shortest
	if isLong && r.Limit == math.Trunc(r.Limit) && r.WarmUp == (WarmUp{}) && !isOfFleet(*r) {
		return calendar.Every(r.Window)
	}
	return r.Calendar.Compile()
}

// windowAt returns the length of the window that is open at now.
func (r *compiledRule) windowAt(now clock.Instant) time.Duration {
	if r.windows == nil {
		return r.rule.Window
	}
	return r.windows.LengthAt(now)
}
