package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

// addTo adds an outcome without a lock, to a word that was read before.
func (w *window) addTo(recent uint64) bool { return w.recent.CompareAndSwap(recent, recent+oneCall) }

func newWindow() *window {
	w := &window{}
	w.recent.Store(frozen)
	w.clear(0, time.Second, 0)
	w.resume()
	return w
}

func TestSwapFailsAfterTheWindowHasChanged(t *testing.T) {
	t.Parallel()
	w := newWindow()
	recent := w.recent.Load()
	w.freeze()
	assert.False(t, w.addTo(recent), "it is frozen")
	w.count(clock.Instant(5*time.Second), bad)
	w.resume()
	assert.False(t, w.addTo(recent), "that was another bucket")
	assert.True(t, w.addTo(w.recent.Load()))
	assert.Equal(t, tally{calls: 2, bad: 1}, w.at(clock.Instant(5*time.Second)))
}

func TestStampsStayInTheirBits(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.stamp = stampMask - 1
	for _, want := range []uint64{stampMask, 0, 1} {
		w.freeze()
		w.resume()
		assert.Equal(t, want<<stampShift, w.recent.Load())
		assert.Zero(t, w.recent.Load()&frozen)
	}
}

func TestFreezingTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWindow()
	assert.True(t, w.addTo(w.recent.Load()))
	w.freeze()
	w.freeze()
	w.resume()
	assert.Equal(t, tally{calls: 1}, w.at(0))
}
