package load

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestBurstsPauseUntilTheNextOne(t *testing.T) {
	var open []int // milliseconds at which the load calls
	for at := time.Duration(0); at < 8*time.Second; {
		if pause := Bursts(at); pause > 0 {
			at += pause
			continue
		}
		open = append(open, int(at/time.Millisecond))
		at += time.Millisecond
	}
	var want []int
	for _, begin := range []int{480, 1000, 1400, 2980, 3000, 4480, 5000, 5400, 6980, 7000} {
		for i := range 20 {
			want = append(want, begin+i)
		}
	}
	assert.Equal(t, want, open)
}

func TestRunReturnsEveryPassInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const goroutines, calls, perCall = 4, 10, time.Millisecond
		var called, passed atomic.Int64
		try := func(int) bool {
			time.Sleep(perCall)
			call := called.Add(1)
			pass := call%3 == 0
			if pass && call <= goroutines*(calls-1) { // the last calls end when the load does
				passed.Add(1)
			}
			return pass
		}
		passes := Run(clock.System(), goroutines, calls*perCall, Steady, try)
		assert.EqualValues(t, goroutines*calls, called.Load())
		assert.Len(t, passes, int(passed.Load()))
		assert.EqualValues(t, goroutines*(calls-1)/3, passed.Load())
		for i, pass := range passes {
			assert.Equal(t, perCall, pass.After.Sub(pass.Before))
			if i > 0 {
				assert.LessOrEqual(t, passes[i-1].After, pass.After, "in order")
			}
		}
	})
}
