package settings

import (
	"time"

	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

// ValidateCalendar judges the calendar of a rule that has the given duration for a window. It says
// whether the window is one of the calendar.
func ValidateCalendar(f *rule.Faults, window time.Duration, c rule.Calendar) (is bool) {
	if !c.IsSet() {
		const noEffect = "has no effect on a window that is a duration: remove it, or set window to days, weeks or months, such as 1d"
		if c.TimeZone != "" {
			f.Add("timeZone", noEffect)
		}
		if c.StartsAt != "" {
			f.Add("startsAt", noEffect)
		}
		return false
	}
	if window != 0 {
		f.Add("window", "is %v and %v: set one of them", window, c.Period)
	}
	if fault := c.Period.Fault(); fault != "" {
		f.Add("window", "%s", fault)
	}
	if _, err := calendar.LoadZone(c.TimeZone); err != nil {
		f.Add("timeZone", "is %v", err)
	}
	if err := calendar.CheckStart(c.StartsAt); err != nil {
		f.Add("startsAt", "is %v", err)
	}
	return true
}
