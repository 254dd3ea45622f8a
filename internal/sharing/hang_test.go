package sharing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

// A server that hangs makes all requests it has got when it goes on, and answers late. What passed
// meanwhile is paid once: no more passes than by the limit, and little less once it answers again.
func TestLateAnswersOfAServerThatHungAreNotPaidTwice(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit = 1000
	window := fleet.Terms{Key: "flow/a", Limit: limit, Window: time.Second, Buckets: 10}
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease":  func(w *world, rates ...float64) { w.join(bucketOf(limit), fleet.ModeLease, fleet.OutageLast, rates...) },
		"window": func(w *world, rates ...float64) { w.join(window, fleet.ModeWindow, fleet.OutageLast, rates...) },
		"ask": func(w *world, rates ...float64) {
			w.joinAsking(window, fleet.AskSlidingLog, fleet.OutageLast, rates...)
		},
	} {
		for _, hangs := range []time.Duration{time.Second, 1700 * ms, 3 * time.Second} {
			t.Run(fmt.Sprintf("%s/%v", name, hangs), func(t *testing.T) {
				t.Parallel()
				const from = 8 * time.Second
				w := newWorld(7, 2*ms)
				join(w, even(8, 2*limit)...)
				w.run(from)
				w.isPaused = true
				w.run(hangs)
				w.resume()
				w.run(6 * time.Second)
				back := from + hangs
				assert.InDelta(t, 1, w.rate(from, back), .15, "while it hangs")
				assert.GreaterOrEqual(t, w.rate(back, back+time.Second), .75, "in the second after it")
				assert.LessOrEqual(t, w.rate(back, back+time.Second), 1.1, "in the second after it")
				assert.GreaterOrEqual(t, w.rate(from, back+3*time.Second), .9, "until three seconds after it")
				assert.LessOrEqual(t, w.rate(from, back+3*time.Second), 1.04, "until three seconds after it")
				assert.InDelta(t, 1, w.rate(back+1500*ms, back+5500*ms), .06, "later")
				assert.LessOrEqual(t, float64(w.worst(from, back+3*time.Second, time.Second, 10*ms))/limit, 1.25, "any second")
			})
		}
	}
}
