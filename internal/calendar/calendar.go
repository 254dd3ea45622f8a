package calendar

import (
	"errors"
	"fmt"
	"time"
)

// Calendar divides time into windows of a period, numbered one after the other: 0 is the one that
// was open when 1970 began in UTC. It never changes, and is safe for concurrent use.
type Calendar struct {
	period Period
	zone   *time.Location
	start  civil // of one of the windows
	first  int64 // the number, counted from that one, of the window that was open in 1970

	every time.Duration // the length of all windows, in place of what is above; 0: of a period
}

// Equal says whether two calendars have the same windows, with the same numbers.
func (c *Calendar) Equal(other *Calendar) bool {
	return c.period == other.period && c.start == other.start && c.zone.String() == other.zone.String() && c.every == other.every
}

// civil is what calendar and clock on a wall show.
type civil struct {
	year       int
	month      time.Month
	day        int
	sinceStart time.Duration // of the day, as clocks show it
}

// New returns the calendar of a period in a time zone of the IANA database, such as
// "Europe/Berlin"; "" is UTC. start is when one of the windows begins, by the clocks of the zone:
// "2026-01-17" or "2026-01-17T06:00". The others follow from it, before and after. Left empty, days
// begin at midnight, weeks on Monday, and months on the first: those of a period of three in
// January, April, July and October.
func New(p Period, zone, start string) (*Calendar, error) {
	if fault := p.Fault(); fault != "" {
		return nil, errors.New("the period " + fault)
	}
	at, err := parseStart(start)
	if err != nil {
		return nil, err
	}
	location, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	if start == "" && p.Unit == Week {
		at.day = 5 // of January 1970: a Monday
	}
	c := &Calendar{period: p, zone: location, start: at}
	c.first = c.Number(time.Unix(0, 0))
	return c, nil
}

// Every returns the calendar of windows that are all as long, more than 0, and begin at multiples of
// that since 1970 began in UTC.
func Every(length time.Duration) *Calendar { return &Calendar{zone: time.UTC, every: length} }

// CheckStart returns what is wrong with the start of a calendar, see [New]; nil if nothing is.
func CheckStart(text string) error {
	_, err := parseStart(text)
	return err
}

// parseStart reads the start of a window. Without one it is the beginning of 1970.
func parseStart(text string) (civil, error) {
	if text == "" {
		return civil{year: 1970, month: time.January, day: 1}, nil
	}
	for _, form := range [...]string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
			return civilOf(t), nil
		}
	}
	return civil{}, fmt.Errorf("%q: write a date from 1970 to 2199, or one with a time, as clocks of the time zone show it: "+
		"2026-01-17 or 2026-01-17T06:00", text)
}

// LoadZone returns a time zone. Unlike [time.LoadLocation] it knows no zone of the machine.
func LoadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New(`"Local": it differs between machines; name a zone, such as Europe/Berlin`)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q: write a name of the IANA database, such as Europe/Berlin; "+
			"if the machine has no such database, import time/tzdata in the program (%w)", name, err)
	}
	return zone, nil
}

// civilOf returns what clocks show at a time, in its own location.
func civilOf(t time.Time) civil {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	since := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	return civil{year, month, day, since}
}

// WindowAt returns when the window begins and ends that is open at a time, in microseconds since the
// epoch: of the calendar, or, if that is nil, of windows of a length from the epoch on.
func WindowAt(c *Calendar, length time.Duration, at time.Time) (begin, end int64) {
	if c != nil {
		number := c.Number(at)
		return c.Start(number).UnixMicro(), c.Start(number + 1).UnixMicro()
	}
	window := length.Microseconds()
	begin = at.UnixMicro() / window * window
	return begin, begin + window
}

// Length returns how long the windows are, about that if their lengths differ: see [Period.Length].
func (c *Calendar) Length() time.Duration {
	if c.every > 0 {
		return c.every
	}
	return c.period.Length()
}

// Start returns when a window begins, in the time zone of the calendar. A time that clocks show
// twice is the first one; one that they leave out is as much later as they are put forward.
func (c *Calendar) Start(number int64) time.Time {
	if c.every > 0 {
		return time.Unix(0, number*int64(c.every)).UTC()
	}
	at, n := c.start, int(number+c.first)*c.period.Count
	switch c.period.Unit {
	case Week:
		at.day += 7 * n
	case Month:
		first := time.Date(at.year, at.month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
		at.year, at.month = first.Year(), first.Month()
		at.day = min(at.day, first.AddDate(0, 1, -1).Day())
	default:
		at.day += n
	}
	return c.at(at)
}

// at returns when the clocks of the zone show it.
func (c *Calendar) at(shown civil) time.Time {
	utc := time.Date(shown.year, shown.month, shown.day, 0, 0, 0, 0, time.UTC).Add(shown.sinceStart)
	before, after := c.offset(utc.Add(-24*time.Hour)), c.offset(utc.Add(24*time.Hour))
	t := utc.Add(-before)
	if before != after && c.offset(t) != before {
		if later := utc.Add(-after); c.offset(later) == after {
			t = later
		}
	}
	return t.In(c.zone)
}

// offset returns how much clocks of the zone are ahead of UTC.
func (c *Calendar) offset(t time.Time) time.Duration {
	_, seconds := t.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// Number returns the number of the window that is open at a time.
func (c *Calendar) Number(t time.Time) int64 {
	if c.every > 0 {
		return floorDiv(t.UnixNano(), int64(c.every))
	}
	shown := civilOf(t.In(c.zone))
	days := int64(shown.date().Sub(c.start.date()) / (24 * time.Hour))
	number := floorDiv(days, int64(c.period.Count))
	switch c.period.Unit {
	case Week:
		number = floorDiv(days, 7*int64(c.period.Count))
	case Month:
		months := int64(shown.year-c.start.year)*12 + int64(shown.month-c.start.month)
		number = floorDiv(months, int64(c.period.Count))
	}
	number -= c.first
	// The time of the day, a short month or a change of the clocks may make it another one.
	for c.Start(number).After(t) {
		number--
	}
	for !c.Start(number + 1).After(t) {
		number++
	}
	return number
}

func (c civil) date() time.Time { return time.Date(c.year, c.month, c.day, 0, 0, 0, 0, time.UTC) }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}
