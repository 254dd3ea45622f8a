package openwindow_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/openwindow"
)

// hands are those of a wall clock that is set.
type hands struct {
	clock *clock.Virtual
	set   time.Duration // how much later it is by the wall clock
}

func (h *hands) until(t time.Time) time.Duration { return h.clock.Until(t) - h.set }

func calendarOf(t require.TestingT, period, zone string) *calendar.Calendar {
	p, ok := calendar.ParsePeriod(period)
	require.True(t, ok, period)
	c, err := calendar.New(p, zone, "")
	require.NoError(t, err)
	return c
}

func windowsAt(t *testing.T, now string) (*openwindow.Windows, *hands) {
	at, err := time.Parse(time.RFC3339, now)
	require.NoError(t, err)
	h := &hands{clock: clock.NewVirtual(at)}
	w := openwindow.New(calendarOf(t, "1d", "Europe/Berlin"))
	w.Keep(h.until, h.clock.Now(), nil)
	return w, h
}

func TestWindowsFollowOnAnother(t *testing.T) {
	t.Parallel()
	w, h := windowsAt(t, "2026-03-28T22:59:59Z") // a second before a day of 23 hours
	first := w.Number(h.clock.Now())
	h.clock.Advance(time.Second)
	assert.Equal(t, first+1, w.Number(h.clock.Now()))
	begin := w.Start(first + 1)
	assert.Equal(t, h.clock.Now(), begin)
	assert.Equal(t, 23*time.Hour, w.Start(first+2).Sub(begin))
	assert.Equal(t, first, w.Number(begin-1), "a call that comes late")
	h.clock.Advance(23*time.Hour - 1)
	assert.Equal(t, first+1, w.Number(h.clock.Now()))
	h.clock.Advance(1)
	assert.Equal(t, first+2, w.Number(h.clock.Now()))
}

func TestWindowsFollowTheWallClock(t *testing.T) {
	t.Parallel()
	w, h := windowsAt(t, "2026-06-01T12:00:00Z")
	first := w.Number(h.clock.Now())
	h.set = 10 * time.Hour // midnight in Berlin
	assert.Equal(t, first, w.Number(h.clock.Now()), "not looked at yet")
	h.clock.Advance(time.Second)
	assert.Equal(t, first+1, w.Number(h.clock.Now()))

	h.set = 0
	h.clock.Advance(time.Second)
	assert.Equal(t, first+1, w.Number(h.clock.Now()), "a window never comes again")
	assert.LessOrEqual(t, w.Start(first+1), h.clock.Now())
	h.clock.Advance(10 * time.Hour)
	assert.Equal(t, first+1, w.Number(h.clock.Now()))
	h.clock.Advance(24 * time.Hour)
	assert.Equal(t, first+2, w.Number(h.clock.Now()), "goes on where the wall clock is")
}

// A clock that is ahead by a year for a moment, or that goes back and forth, opens a window at most once in
// the time that windows last, and keeps none open for much longer.
func TestWindowsLastAsLongAsTheyAreWhateverTheWallClockDoes(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	w, h := windowsAt(t, "2026-06-01T12:00:00Z")
	first := w.Number(h.clock.Now())
	h.set = 365*day + 9*time.Hour
	h.clock.Advance(time.Second)
	ahead := w.Number(h.clock.Now())
	assert.Greater(t, ahead, first)
	for i := range int(day/time.Second) - 1 { // back and forth, for a day
		h.set = time.Duration(i%2) * (365*day + 9*time.Hour)
		h.clock.Advance(time.Second)
		require.Contains(t, []int64{ahead, ahead + 1}, w.Number(h.clock.Now())) // it may have come to its end a year ahead
	}
	h.set = 0
	before := w.Number(h.clock.Now())
	opened, last := 0, h.clock.Now()
	for range 10 * 24 {
		h.clock.Advance(time.Hour)
		now := h.clock.Now()
		number := w.Number(now)
		assert.LessOrEqual(t, w.Start(number), now)
		assert.Greater(t, w.Start(number+1), now)
		assert.LessOrEqual(t, w.Start(number-1), w.Start(number))
		if number != before {
			assert.Equal(t, before+1, number)
			assert.LessOrEqual(t, now.Sub(last), 2*day)
			before, last = number, now
			opened++
		}
	}
	assert.InDelta(t, 10, opened, 1)
	assert.Equal(t, 22*time.Hour, w.Start(before+1).Time().UTC().Sub(w.Start(before+1).Time().UTC().Truncate(day)), "at midnight in Berlin")
}

func TestWindowsGoOnFromOthers(t *testing.T) {
	t.Parallel()
	w, h := windowsAt(t, "2026-06-01T12:00:00Z")
	h.set = 10 * time.Hour
	h.clock.Advance(time.Second)
	number := w.Number(h.clock.Now())
	h.set = 0
	next := openwindow.New(calendarOf(t, "1d", "Europe/Berlin"))
	next.Keep(h.until, h.clock.Now(), w)
	assert.Equal(t, number, next.Number(h.clock.Now()))
	h.clock.Advance(2 * time.Second)
	assert.Equal(t, number, next.Number(h.clock.Now()))
	weeks := openwindow.New(calendarOf(t, "1w", "Europe/Berlin"))
	weeks.Keep(h.until, h.clock.Now(), w)
	assert.NotEqual(t, number, weeks.Number(h.clock.Now()))
}

func TestWindowsAllocateOnceASecond(t *testing.T) {
	w, h := windowsAt(t, "2026-06-01T12:00:00Z")
	now := h.clock.Now()
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.Number(now) }))
}

func BenchmarkNumber(b *testing.B) {
	c, _ := calendar.New(calendar.Period{Count: 1, Unit: calendar.Month}, "UTC", "")
	v := clock.NewVirtual(time.Unix(1e9, 0))
	w, now := openwindow.New(c), v.Now()
	w.Keep(v.Until, now, nil)
	for b.Loop() {
		w.Number(now)
	}
}
