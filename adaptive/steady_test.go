package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

// A class of which nothing is known has a call every 10 ms, each of which takes 300 ms.
func TestUsualResponseTimeIsLearntWhileAsManyCallsEndAsCome(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name    string
		ends    func(i int) bool
		learned bool
	}{
		{"all that come end", func(int) bool { return true }, true},
		{"a fifth of them pile up", func(i int) bool { return i%5 > 0 }, false},
	} {
		c, now := new(class), clock.Instant(time.Minute)
		for i := range 1000 {
			now = now.Add(10 * time.Millisecond)
			c.resume(now)
			if i >= 30 && of.ends(i) {
				c.end(300*time.Millisecond, false, 0, time.Hour)
				c.leave(now)
			}
			if i%10 == 0 {
				c.learnSteady(now)
			}
		}
		assert.Equal(t, of.learned, c.usual.Verified(), of.name)
		if of.learned {
			assert.InDelta(t, 0.3, c.usual.Mean(), 0.01, of.name)
		}
	}
}
