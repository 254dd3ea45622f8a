// Package openwindow tells which window of a calendar is open at an instant of an engine's clock.
package openwindow

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/calendar"
)

// Windows tells which window of a calendar is open at an instant of a clock. People set the wall
// clock, and it follows within a second. A window that has been open once is never open again: if
// the wall clock is set back beyond its beginning, it goes on, until the wall clock has come to its end,
// or until it was open for as long as it is: a clock that was ahead by years for a moment keeps no
// window open for years.
//
// Windows begin with Keep, and may be used concurrently after it. Number and Start take no lock and
// allocate nothing, but for one call in a second and at the end of a window.
type Windows struct {
	calendar *calendar.Calendar
	open     atomic.Pointer[window]
	mu       sync.Mutex                    // held by who looks at the wall clock
	until    func(time.Time) time.Duration // by the wall clock; nil if instants are the only time there is
}

// window is the open window, as it was seen at an instant.
type window struct {
	number     int64 // grows from window to window
	shown      int64 // the number that the calendar has for it, less if the wall clock was set back for long
	opened     clock.Instant
	begin, end clock.Instant // begin is not after the first instant at which it was open
	look       clock.Instant // when the wall clock is to be looked at again
	apart      time.Duration // how much later it is by the wall clock
}

// Shortest is from which length on windows that are all as long follow the wall clock as those of a
// calendar do. People mean the hour that the clock shows by a window of one; shorter windows are
// measured, and begin with the hours of the calendar only until the clock is set.
const Shortest = time.Hour

// lookEvery is how often the wall clock is looked at.
const lookEvery = time.Second

// New returns the windows of a calendar, nil if there is none. Keep is to be called before anything
// else.
func New(c *calendar.Calendar) *Windows {
	if c == nil {
		return nil
	}
	return &Windows{calendar: c}
}

// Keep has the windows follow a clock from now on, unless they do so already. until is that of the
// clock, see [clock.Clock]; nil if instants are the only time there is. Windows of the same calendar
// that were in use before are gone on with; nil if there are none.
func (w *Windows) Keep(until func(time.Time) time.Duration, now clock.Instant, before *Windows) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open.Load() != nil {
		return
	}
	w.until = until
	if before != nil && before.calendar.Equal(w.calendar) {
		w.open.Store(before.open.Load())
	} else {
		w.open.Store(w.seen(now))
	}
}

// Calendar returns the calendar of the windows.
func (w *Windows) Calendar() *calendar.Calendar { return w.calendar }

// Number returns the number of the window that is open at an instant. Of one before the open
// window began it is the number of the window before, whenever that was.
func (w *Windows) Number(now clock.Instant) int64 {
	open := w.open.Load()
	if now >= open.look {
		open = w.lookAgain(now)
	}
	if now < open.begin {
		return open.number - 1
	}
	return open.number
}

// Start returns the instant at which a window begins, as far as the wall clock tells at present.
// At that of the open window, and after it, the window is open.
func (w *Windows) Start(number int64) clock.Instant {
	open := w.open.Load()
	switch number {
	case open.number:
		return open.begin
	case open.number + 1:
		return open.end
	}
	start := instantOf(w.calendar.Start(number-(open.number-open.shown)), open.apart)
	if number < open.number {
		return min(start, open.begin)
	}
	return start
}

// LengthAt returns the length of the window that is open at an instant.
func (w *Windows) LengthAt(now clock.Instant) time.Duration {
	number := w.Number(now)
	return w.Start(number + 1).Sub(w.Start(number))
}

// lookAgain looks at the wall clock, unless another goroutine has done so.
func (w *Windows) lookAgain(now clock.Instant) *window {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := w.open.Load()
	if now < open.look {
		return open
	}
	seen := w.seen(now)
	switch last := open.opened.Add(w.calendar.Start(open.shown + 1).Sub(w.calendar.Start(open.shown))); {
	case seen.shown > open.shown:
		seen.number = max(seen.number, open.number+1)
	case seen.shown == open.shown: // its end is where the wall clock has it
		seen.number, seen.opened, seen.begin = open.number, open.opened, open.begin
	case now < last: // the wall clock was set back
		seen.number, seen.shown, seen.opened, seen.begin, seen.end = open.number, open.shown, open.opened, open.begin, last
		seen.look = min(seen.end, now.Add(lookEvery))
	default:
		seen.number, seen.begin = open.number+1, last
	}
	w.open.Store(seen)
	return seen
}

// seen returns the window that is open by the wall clock.
func (w *Windows) seen(now clock.Instant) *window {
	apart := time.Duration(0)
	if at := now.Time(); w.until != nil {
		apart = (-w.until(at)).Round(time.Second)
	}
	number := w.calendar.Number(now.Time().Add(apart))
	end := instantOf(w.calendar.Start(number+1), apart)
	return &window{
		number: number, shown: number, opened: now, begin: instantOf(w.calendar.Start(number), apart), end: end,
		look: min(end, now.Add(lookEvery)), apart: apart,
	}
}

// instantOf returns the instant at which the wall clock shows a time.
func instantOf(t time.Time, apart time.Duration) clock.Instant {
	return clock.Instant(t.UnixNano()).Add(-apart)
}
