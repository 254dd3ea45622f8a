package load

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// fixed is a source that tells the same at every instant.
type fixed struct {
	taken           float64
	waiting         bool
	passed, refused uint64 // more at every look
	looks           uint64
}

func (f *fixed) Places(clock.Instant) (float64, bool) { return f.taken, f.waiting }

func (f *fixed) Counted() (passed, refused uint64) {
	f.looks++
	return f.looks * f.passed, f.looks * f.refused
}

func TestLoadFollowsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		source      fixed
		utilization float64
		level       Level
	}{
		"idle":               {fixed{}, 0, rule.LoadNone},
		"half of the places": {fixed{taken: .5}, .5, rule.LoadNone},
		"all places":         {fixed{taken: 1}, 1, rule.LoadModerate},
		"more than all":      {fixed{taken: 3}, 1, rule.LoadModerate},
		"calls wait":         {fixed{taken: .2, waiting: true}, 1.25, rule.LoadSevere},
		"more, and waiting":  {fixed{taken: 3, waiting: true}, 1.25, rule.LoadSevere},
		"no number":          {fixed{taken: math.NaN()}, 0, rule.LoadNone},
		"calls are refused":  {fixed{taken: .1, passed: 50, refused: 50}, 2, rule.LoadShedding},
	} {
		now := clock.Instant(time.Second)
		m := NewMeter(&of.source, now)
		for range 1000 {
			now = now.Add(Every)
			m.At(&of.source, now)
		}
		level, utilization, rate := m.Present(&of.source, now)
		assert.InDelta(t, 10*float64(of.source.passed), rate, .01, name)
		assert.Equal(t, of.level, level, name)
		assert.InDelta(t, of.utilization, utilization, .01, name)
		assert.True(t, m.WasAsked(now.Add(time.Minute-Every)), name)
		assert.False(t, m.WasAsked(now.Add(time.Minute+Every)), name)
	}
}
