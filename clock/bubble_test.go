package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clocks are the system's clock as it is read by the kernel and, where that can be, by the counter.
func clocks() map[string]Clock {
	s := newSystem()
	all := map[string]Clock{"kernel": &s}
	if ticks() != 0 {
		if c := newCounterClock(newSystem()); c != nil {
			all["counter"] = c
		}
	}
	return all
}

// awaitLine waits until the line has ended by which a clock with a counter goes.
func awaitLine(c Clock) {
	if counter, ok := c.(*counterClock); ok {
		for l := counter.line.Load(); ticks()-l.ticks < l.length; { // the time of the bubble stands still
		}
	}
}

func TestClockFromOutsideGoesOnInABubbleAsTimePassesThere(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			outside := c.Now()
			for range 2 { // each bubble begins at the same time
				synctest.Test(t, func(t *testing.T) {
					awaitLine(c)
					begin := c.Now()
					assert.GreaterOrEqual(t, begin, outside)
					for _, d := range []time.Duration{time.Nanosecond, 10 * time.Millisecond, 36 * time.Hour} {
						before := c.Now()
						time.Sleep(d)
						assert.Equal(t, before.Add(d), c.Now())
					}
					outside = c.Now()
				})
			}
			begin := c.Now()
			assert.GreaterOrEqual(t, begin, outside)
			time.Sleep(3 * time.Millisecond)
			assert.GreaterOrEqual(t, c.Now().Sub(begin), 3*time.Millisecond-2*time.Microsecond, "it goes on outside")
			assert.Less(t, c.Now().Sub(begin), time.Minute)
		})
	}
}

// In the first millisecond in a bubble, in which an hour may pass there, a wait ends when it should.
func TestClockFromOutsideKnowsOfABubbleInWhichItMakesATimer(t *testing.T) {
	wait := map[string]func(c Clock, d time.Duration){
		"timer": func(c Clock, d time.Duration) { <-c.NewTimer(d).C() },
		"function": func(c Clock, d time.Duration) {
			called := make(chan struct{})
			c.(interface {
				AfterFunc(d time.Duration, do func())
			}).AfterFunc(d, func() { close(called) })
			<-called
		},
	}
	for how := range wait {
		for name, c := range clocks() {
			t.Run(how+" by the "+name, func(t *testing.T) {
				for range 5 {
					synctest.Test(t, func(t *testing.T) {
						before := c.Now()
						wait[how](c, time.Hour)
						assert.GreaterOrEqual(t, c.Now().Sub(before), time.Hour)
					})
				}
			})
		}
	}
}

func TestClockOfABubbleGoesOnOutsideAndInOthers(t *testing.T) {
	var c Clock
	var last Instant
	for range 2 {
		synctest.Test(t, func(*testing.T) {
			if c == nil {
				c = System()
				assert.Equal(t, Instant(time.Now().UnixNano()), c.Now())
			}
			assert.GreaterOrEqual(t, c.Now(), last)
			for _, d := range []time.Duration{time.Nanosecond, 36 * time.Hour} {
				before := c.Now()
				time.Sleep(d)
				assert.Equal(t, before.Add(d), c.Now())
			}
			last = c.Now()
		})
		synctest.Test(t, func(*testing.T) {
			before := c.Now()
			assert.GreaterOrEqual(t, before, last, "another one, which begins at the same time")
			time.Sleep(time.Hour)
			assert.Equal(t, before.Add(time.Hour), c.Now())
			last = c.Now()
		})
		begin := c.Now()
		assert.GreaterOrEqual(t, begin, last)
		time.Sleep(3 * time.Millisecond)
		assert.GreaterOrEqual(t, c.Now().Sub(begin), 3*time.Millisecond)
		last = c.Now()
	}
}

// A timer of an engine that was made outside fires when its time has come.
func TestWaitByAClockFromOutsideEnds(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			c.Now()
			synctest.Test(t, func(t *testing.T) {
				awaitLine(c)
				due := c.Now().Add(1500 * time.Millisecond)
				<-TimerAt(c, due).C()
				require.Equal(t, due, c.Now())
			})
		})
	}
}

func TestClockNeverGoesBackWhileItIsUsedInsideAndOutsideOfBubbles(t *testing.T) {
	for name, c := range clocks() {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			last := Instant(0)
			read := func() {
				mu.Lock()
				defer mu.Unlock()
				now := c.Now()
				assert.GreaterOrEqual(t, now.Sub(last), -2*time.Microsecond)
				last = now
			}
			stop := make(chan struct{})
			var outside sync.WaitGroup
			outside.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						read()
						time.Sleep(10 * time.Microsecond)
					}
				}
			})
			for range 20 {
				synctest.Test(t, func(*testing.T) {
					for range 10 {
						read()
						time.Sleep(time.Millisecond)
					}
				})
			}
			close(stop)
			outside.Wait()
		})
	}
}

// Whoever finds that another goroutine was quicker to begin a line that is older than its own call goes
// by the counter.
func TestLostSwapReturnsNoTimeBeforeTheCall(t *testing.T) {
	if ticks() == 0 {
		t.Skip("no counter")
	}
	c := newCounterClock(newSystem())
	if c == nil {
		t.Skip("the counter is not fit")
	}
	for range 200 {
		present := c.line.Load()
		for ticks()-present.ticks < period { // until it has ended
			time.Sleep(100 * time.Microsecond)
		}
		ended := *present                                             // as a goroutine has loaded it
		c.line.Store(present.next(c.read()))                          // the other one is quicker
		for begun := c.line.Load(); ticks()-begun.ticks < period/2; { // and the first is interrupted
			time.Sleep(50 * time.Microsecond)
		}
		before := c.system.Now()
		now := c.renew(&ended)
		require.GreaterOrEqual(t, now.Sub(before), -50*time.Microsecond)
	}
}
