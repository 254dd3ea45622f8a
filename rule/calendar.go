package rule

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/document"
)

// Calendar says that the window of a limit is one of the calendar: a day, a week, a month, or
// several of them. The zero value is none. It is a plain value, and can be compared with ==.
type Calendar struct {
	// Period is the length of a window, such as a month. It is "window: 1mo" in documents,
	// where other rules have a duration.
	Period Period

	// TimeZone is where days begin: a name of the IANA database, such as "Europe/Berlin". Left
	// out, it is UTC.
	TimeZone string

	// StartsAt is when one of the windows begins, as clocks of the time zone show it:
	// "2026-01-17" or "2026-01-17T06:00". Others follow from it, before and after: a month that
	// begins on the 31st begins on the last day of shorter months. Left out, windows begin at
	// midnight, weeks on Monday and months on the first.
	StartsAt string
}

// Period is a number of days, weeks or months: "1d", "2w", "3mo" in documents. The zero value is no
// period. All together are at most about ten years.
type Period = calendar.Period

// The units of a [Period].
const (
	Day   = calendar.Day
	Week  = calendar.Week
	Month = calendar.Month
)

// IsSet says whether the window is one of the calendar.
func (c Calendar) IsSet() bool { return c.Period != Period{} }

// Length returns how long a window is: about as long as the period, or else a duration.
func (c Calendar) Length(otherwise time.Duration) time.Duration {
	if c.IsSet() {
		return c.Period.Length()
	}
	return otherwise
}

// CalendarFields returns the fields window, timeZone and startsAt of a kind whose limits are for
// a duration or a window of the calendar.
func CalendarFields[R any](window func(*R) *time.Duration, at func(*R) *Calendar, given ...string) []Field[R] {
	duration := FieldOf("window", window)
	field := Field[R]{
		Path: "window",
		read: func(r *R, v document.Value) (fault string) {
			var ok bool
			if at(r).Period, ok = calendar.ParsePeriod(v.Text); ok && v.Type == document.Text {
				return ""
			}
			if fault = duration.read(r, v); fault != "" {
				return fmt.Sprintf(`is %v: write a duration with a unit, such as "500ms" or "1s", or days, weeks or months, such as "1d" or "3mo"`, v)
			}
			return ""
		},
		write: func(r *R) document.Value {
			if at(r).IsSet() {
				return document.TextValue(at(r).Period.String())
			}
			return duration.write(r)
		},
		reset: func(r *R) { duration.reset(r); at(r).Period = Period{} },
		equal: func(a, b *R) bool { return duration.equal(a, b) && at(a).Period == at(b).Period },
	}
	return []Field[R]{
		field.Given(given...).
			Says("the time that the limit speaks of: a duration such as 1s, or days, weeks or months: 1d, 2w, 3mo"),
		FieldOf("timeZone", func(r *R) *string { return &at(r).TimeZone }).Given("window").
			Says("windows of days, weeks or months: where the days begin, such as Europe/Berlin").Otherwise("UTC"),
		FieldOf("startsAt", func(r *R) *string { return &at(r).StartsAt }).Given("window").
			Says("such windows: when one begins by the clocks of the time zone, such as 2026-01-17 or 2026-01-17T06:00").
			Otherwise("midnight; of weeks, on Monday; of months, on the first"),
	}
}

// Compile returns the calendar, which must be valid; nil if it is none.
func (c Calendar) Compile() *calendar.Calendar {
	if !c.IsSet() {
		return nil
	}
	of, err := calendar.New(c.Period, c.TimeZone, c.StartsAt)
	if err != nil {
		panic("rule: " + err.Error()) // it was validated
	}
	return of
}
