package hotparam

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/openwindow"
	"github.com/penstock-go/penstock/rule"
)

// countsWhole says whether a window is counted, and the limit thus a whole number.
func (r *Rule) countsWhole() bool { return r.Algorithm == SlidingWindow || r.Algorithm == FixedWindow }

// validateWindow judges a window that is counted.
func (r *Rule) validateWindow(f *rule.Faults) {
	switch {
	case r.Algorithm == Prepaid:
		if r.Window != 0 || r.Calendar.IsSet() {
			f.Add("window", "has no effect with algorithm %q, of which nothing flows back: remove one of them", Prepaid)
		}
	case r.Calendar.IsSet() && r.Algorithm != FixedWindow:
		f.Add("algorithm", "is %q, but window is %v, which is a window of the calendar: remove algorithm, or set it to %q",
			r.Algorithm, r.Calendar.Period, FixedWindow)
	case r.Calendar.IsSet():
	case r.countsWhole():
		validateBuckets(f, "window", r.Window)
	case !rule.Within(r.Window, minWindow, maxWindow):
		f.Add("window", "is %v: must be from %v to %v, or days, weeks or months, such as 2d", r.Window, minWindow, maxWindow)
	}
}

// compileWindow compiles a window that is counted.
func (c *compiled) compileWindow() {
	switch {
	case c.calendar != nil:
		c.terms = table.CompileCalendar(c.version, openwindow.New(c.calendar))
	case c.rule.Algorithm == FixedWindow && c.rule.Window >= openwindow.Shortest && !isOfFleet(&c.rule):
		c.terms = table.CompileCalendar(c.version, openwindow.New(calendar.Every(c.rule.Window)))
	case c.rule.Algorithm == FixedWindow:
		c.terms = table.CompileFixedWindow(c.version, c.rule.Window)
	case c.rule.Algorithm == SlidingWindow:
		c.terms = table.CompileWindow(c.version, c.rule.Window)
	}
}

// windows returns the windows that follow the calendar, nil if there are none.
func (c *compiled) windows() *openwindow.Windows {
	if c.terms == nil {
		return nil
	}
	return c.terms.Calendar()
}

// keepCalendar has windows that follow the calendar go by the wall clock of the engine, and go on from
// those of the present limiter; nil if there is none.
func (c *compiled) keepCalendar(env rule.Env, present rule.Limiter) {
	windows := c.windows()
	if windows == nil {
		return
	}
	var before *openwindow.Windows
	if is, ok := present.(interface{ base() *limiter }); ok && is.base().terms != nil {
		before = is.base().terms.Calendar()
	}
	windows.Keep(env.Until, env.Now, before)
}

// windowAt returns the length of the window that is open at now.
func (c *compiled) windowAt(now clock.Instant) time.Duration {
	if windows := c.windows(); windows != nil {
		return windows.LengthAt(now)
	}
	return c.rule.Window
}

// outlasts returns how long after a call all windows are over that it counts in.
func (r *Rule) outlasts() time.Duration {
	if r.Calendar.IsSet() {
		return r.Calendar.Period.Longest()
	}
	return r.Window
}

// wholeFault returns what is wrong with a limit that is to be a whole number; "" if nothing is.
func (r *Rule) wholeFault(limit float64) string {
	if (r.countsWhole() || r.Algorithm == Prepaid) && limit != math.Trunc(limit) {
		return `must be a whole number with algorithm "` + string(r.Algorithm) + `"`
	}
	return ""
}
