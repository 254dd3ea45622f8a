package etcd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestBackoffDoublesToItsMaximumAndResets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shortest := rapid.Int64Range(1, 1<<62).Draw(t, "min")
		longest := rapid.Int64Range(shortest, 1<<62).Draw(t, "max")
		b := backoff{min: time.Duration(shortest), max: time.Duration(longest)}
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			limit := b.min
			for range rapid.IntRange(1, 80).Draw(t, "failures") {
				pause := b.next()
				assert.Equal(t, limit, b.limit)
				assert.GreaterOrEqual(t, pause, time.Duration(0))
				assert.LessOrEqual(t, pause, limit)
				if limit > b.max/2 {
					limit = b.max
				} else {
					limit *= 2
				}
			}
			b.reset()
		}
	})
}

func TestBackoffPausesAreSpread(t *testing.T) {
	b := backoff{min: time.Hour, max: time.Hour}
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		pause := b.next()
		shortest, longest = min(shortest, pause), max(longest, pause)
	}
	assert.Less(t, shortest, 15*time.Minute)
	assert.Greater(t, longest, 45*time.Minute)
}
