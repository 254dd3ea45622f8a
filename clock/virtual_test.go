package clock_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func newVirtual() *clock.Virtual {
	return clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC))
}

func TestVirtualChangesOnlyWhenAdvanced(t *testing.T) {
	t.Parallel()
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.FixedZone("west", -3600))
	c := clock.NewVirtual(start)
	assert.Equal(t, start.UTC(), c.Now().Time())
	before := c.Now()
	assert.Equal(t, before, c.Now())

	c.Advance(1500 * time.Millisecond)
	assert.Equal(t, start.UTC().Add(1500*time.Millisecond), c.Now().Time())
	c.Advance(0)
	assert.Equal(t, 1500*time.Millisecond, c.Now().Sub(clock.Instant(start.UnixNano())))
}

func TestVirtualNeverGoesBack(t *testing.T) {
	t.Parallel()
	c := newVirtual()
	before := c.Now()
	assert.Panics(t, func() { c.Advance(-1) })
	assert.Equal(t, before, c.Now(), "and stays usable")
	c.Advance(1)
	assert.Equal(t, before.Add(1), c.Now())
}

func TestVirtualUntil(t *testing.T) {
	t.Parallel()
	c := newVirtual()
	deadline := c.Now().Time().Add(time.Second).Local()
	assert.Equal(t, time.Second, c.Until(deadline))
	c.Advance(3 * time.Second)
	assert.Equal(t, -2*time.Second, c.Until(deadline))
}

func TestVirtualTimersFireInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	c := newVirtual()
	start := c.Now()
	after := []time.Duration{5, 1, 4, 2, 3, 2}
	timers := make([]clock.Timer, len(after))
	for i, d := range after {
		timers[i] = c.NewTimer(d * time.Second)
	}

	c.Advance(4 * time.Second)

	for i, d := range after {
		at, ok := fired(timers[i])
		assert.Equal(t, d <= 4, ok, "timer %d", i)
		if ok {
			assert.Equal(t, start.Add(d*time.Second).Time(), at, "timer %d fired when the clock stood at its time", i)
		}
	}
	assert.Equal(t, 1, c.Timers(), "the one that is not due is still armed")
}

func TestVirtualTimer(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, c *clock.Virtual){
		"fires at its time and not before": func(t *testing.T, c *clock.Virtual) {
			timer := c.NewTimer(time.Second)
			c.Advance(time.Second - 1)
			assertSilent(t, timer, "a nanosecond is left")
			c.Advance(1)
			assertFired(t, timer, "now")
			c.Advance(time.Hour)
			assertSilent(t, timer, "only once")
		},
		"fires at once when no time is left": func(t *testing.T, c *clock.Virtual) {
			assertFired(t, c.NewTimer(0), "zero")
			assertFired(t, c.NewTimer(-time.Second), "negative")
			assert.Zero(t, c.Timers())
		},
		"stays silent once stopped": func(t *testing.T, c *clock.Virtual) {
			timer := c.NewTimer(time.Second)
			timer.Stop()
			timer.Stop()
			assert.Zero(t, c.Timers())
			c.Advance(time.Hour)
			assertSilent(t, timer, "stopped before its time")
			timer.Reset(time.Second)
			c.Advance(time.Second)
			timer.Stop()
			assertSilent(t, timer, "stopped after it fired, before it was read")
		},
		"counts from its reset": func(t *testing.T, c *clock.Virtual) {
			timer := c.NewTimer(time.Second)
			c.Advance(time.Second - 1)
			timer.Reset(time.Second)
			assert.Equal(t, 1, c.Timers())
			c.Advance(time.Second - 1)
			assertSilent(t, timer, "its time was put off")
			c.Advance(1)
			assertFired(t, timer, "its new time has come")
		},
		"forgets an earlier firing when reset": func(t *testing.T, c *clock.Virtual) {
			timer := c.NewTimer(time.Second)
			c.Advance(time.Minute)
			timer.Reset(time.Second)
			assertSilent(t, timer, "what the first arming left is gone")
			c.Advance(time.Second)
			assertFired(t, timer, "the second arming counts")
		},
		"is patient without end": func(t *testing.T, c *clock.Virtual) {
			timer := c.NewTimer(math.MaxInt64)
			c.Advance(time.Hour)
			assertSilent(t, timer, "292 years have not passed")
			assert.Equal(t, 1, c.Timers())
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newVirtual())
		})
	}
}

func TestVirtualAtTheZeroTimeIsAtTheEpoch(t *testing.T) {
	t.Parallel()
	assert.Equal(t, clock.Instant(0), clock.NewVirtual(time.Time{}).Now())
}

func TestVirtualOutsideTheRangeOfInstantsPanics(t *testing.T) {
	t.Parallel()
	for _, start := range []time.Time{
		time.Unix(0, -1), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		assert.PanicsWithValue(t, fmt.Sprintf(
			"clock: NewVirtual at %v: must be from 1970 to 2262, or the zero Time for the Unix epoch", start),
			func() { clock.NewVirtual(start) })
	}
	assert.Equal(t, clock.Instant(math.MaxInt64), clock.NewVirtual(time.Unix(0, math.MaxInt64)).Now())
}
