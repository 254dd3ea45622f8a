package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Unit is what a [Period] counts.
type Unit string

// The units.
const (
	Day   Unit = "d"
	Week  Unit = "w"
	Month Unit = "mo"
)

// MaxLength is the longest length of a period, of whatever unit: 10 years.
const MaxLength = 10 * 366 * 24 * time.Hour

// Period is a number of days, weeks or months: "1d", "2w", "3mo". The zero value is no period.
type Period struct {
	Count int // at least 1
	Unit  Unit
}

// ParsePeriod reads a period as [Period.String] writes it. ok is false if the text is none, such
// as that of a duration.
func ParsePeriod(text string) (p Period, ok bool) {
	digits := strings.TrimRight(text, "dwmo")
	count, err := strconv.Atoi(digits)
	if err != nil || count < 0 || digits != strconv.Itoa(count) { // +1 and 01 are no counts
		return Period{}, false
	}
	switch unit := Unit(text[len(digits):]); unit {
	case Day, Week, Month:
		return Period{count, unit}, true
	}
	return Period{}, false
}

// String returns the period as documents have it: "1mo"; "" if it is none.
func (p Period) String() string {
	if p == (Period{}) {
		return ""
	}
	return strconv.Itoa(p.Count) + string(p.Unit)
}

// Fault returns what is wrong with the period; "" if nothing is.
func (p Period) Fault() string {
	switch p.Unit {
	case Day, Week, Month:
	default:
		return fmt.Sprintf("has the unit %q: must be d, w or mo", p.Unit)
	}
	if p.Count < 1 || p.Count > int(MaxLength/p.unitLength()) {
		return fmt.Sprintf("is %v: must be from 1%s to %d%s", p, p.Unit, MaxLength/p.unitLength(), p.Unit)
	}
	return ""
}

// Length returns how long the period is about: of days of 24 hours, and months of a twelfth of a year.
func (p Period) Length() time.Duration { return time.Duration(p.Count) * p.unitLength() }

// Longest returns a time than which no window of the period is longer.
func (p Period) Longest() time.Duration { return p.Length() + 96*time.Hour }

func (p Period) unitLength() time.Duration {
	const day = 24 * time.Hour
	switch p.Unit {
	case Week:
		return 7 * day
	case Month:
		return 2629746 * time.Second // a twelfth of 365.2425 days
	}
	return day
}
