package load

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

func TestRunNotesEveryPass(t *testing.T) {
	var calls, passed atomic.Int64
	try := func(int) bool {
		if calls.Add(1)%3 != 0 {
			return false
		}
		passed.Add(1)
		return true
	}
	passes := Run(clock.System(), 4, 10*time.Millisecond, Steady, try)
	require.NotEmpty(t, passes)
	assert.InDelta(t, passed.Load(), len(passes), 4, "the last of each goroutine may be too late")
	for i, pass := range passes {
		assert.LessOrEqual(t, pass.Before, pass.After)
		if i > 0 {
			assert.LessOrEqual(t, passes[i-1].After, pass.After, "in order")
		}
	}
}
