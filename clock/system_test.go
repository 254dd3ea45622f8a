package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

// pass advances the time of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestSystemSecondsCoincideWithCalendarSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pass(123_456_789 * time.Nanosecond)
		c := clock.System()
		for _, d := range []time.Duration{0, time.Nanosecond, time.Second, 36 * time.Hour} {
			pass(d)
			assert.Equal(t, time.Now().UnixNano(), c.Now().Time().UnixNano())
		}
	})
}

func TestSystemAgreesWithTheMachine(t *testing.T) {
	t.Parallel()
	assert.WithinDuration(t, time.Now(), clock.System().Now().Time(), time.Minute)
}

func TestSystemNeverGoesBack(t *testing.T) {
	t.Parallel()
	c := clock.System()
	last := c.Now()
	for range 100_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("went back by %v", last.Sub(now))
		}
		last = now
	}
}

func TestSystemClocksAgreeForAnyAnchor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		early := clock.System()
		pass(time.Hour + 1)
		assert.Equal(t, clock.System().Now(), early.Now())
	})
}

func TestSystemUntilDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		wallClockOnly := deadline.Round(0)

		for _, left := range []time.Duration{3 * time.Second, 2 * time.Second, time.Second, 0, -time.Second} {
			assert.Equal(t, left, c.Until(deadline))
			assert.Equal(t, left, c.Until(wallClockOnly))
			pass(time.Second)
		}
	})
}

func TestSystemTimer(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, c clock.Clock){
		"fires once, after its time": func(t *testing.T, c clock.Clock) {
			start := c.Now()
			timer := c.NewTimer(1500 * time.Millisecond)
			<-timer.C()
			assert.Equal(t, 1500*time.Millisecond, c.Now().Sub(start))
			pass(time.Hour)
			assertSilent(t, timer, "only once")
		},
		"fires at once when no time is left": func(t *testing.T, c clock.Clock) {
			start := c.Now()
			<-c.NewTimer(0).C()
			<-c.NewTimer(-time.Second).C()
			assert.Equal(t, start, c.Now())
		},
		"stays silent once stopped": func(t *testing.T, c clock.Clock) {
			timer := c.NewTimer(time.Second)
			timer.Stop()
			pass(time.Minute)
			assertSilent(t, timer, "stopped before its time")
			timer.Reset(time.Second)
			pass(time.Minute)
			timer.Stop()
			assertSilent(t, timer, "stopped after it fired, before it was read")
		},
		"counts from its reset": func(t *testing.T, c clock.Clock) {
			timer := c.NewTimer(time.Second)
			pass(999 * time.Millisecond)
			timer.Reset(time.Second)
			pass(999 * time.Millisecond)
			assertSilent(t, timer, "its time was put off")
			pass(time.Millisecond)
			assertFired(t, timer, "its new time has come")
		},
		"forgets an earlier firing when reset": func(t *testing.T, c clock.Clock) {
			timer := c.NewTimer(time.Second)
			pass(time.Minute)
			timer.Reset(time.Second)
			assertSilent(t, timer, "what the first arming left is gone")
			pass(time.Second)
			assertFired(t, timer, "the second arming counts")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, clock.System()) })
		})
	}
}
