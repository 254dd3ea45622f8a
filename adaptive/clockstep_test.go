package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

// The clock is set while calls are under way: they seem to have taken an hour, or less than nothing. Nothing is learned
// from it or refused for it, and an overload is still found.
func TestClockThatIsSetIsNoOverload(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour, "a second back": -time.Second} {
		s := newGateScene(t, adaptive.Rule{})
		s.run(400, 8, 10*time.Millisecond, 5*time.Second)
		for range 3 {
			var calls []*gateCall
			for range 5 {
				c := s.call(rule.PriorityNormal)
				require.Equal(t, rule.Pass, c.decision, name)
				calls = append(calls, c)
			}
			s.now = s.now.Add(step)
			for _, c := range calls {
				c.end()
			}
			_, refused := s.run(400, 8, 10*time.Millisecond, 5*time.Second)
			assert.Zero(t, refused, name)
			assert.InDelta(t, 0.010, s.gauges().baseline, 0.001, name)
			assert.Less(t, s.gauges().limit, 40, name)
		}
		passed, refused := s.run(2400, 8, 10*time.Millisecond, 5*time.Second)
		assert.Greater(t, refused, 5000, name)
		assert.Greater(t, passed, 3400, name)
	}
}
