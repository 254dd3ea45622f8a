package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

func TestBackoffDoublesToItsMaximumAndResets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shortest := rapid.Int64Range(0, 1<<62).Draw(t, "min")
		longest := rapid.Int64Range(shortest, 1<<62).Draw(t, "max")
		b := Backoff{Min: time.Duration(shortest), Max: time.Duration(longest)}
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			limit := b.Min
			for range rapid.IntRange(1, 80).Draw(t, "failures") {
				pause := b.Next()
				assert.GreaterOrEqual(t, pause, limit-limit/2)
				assert.LessOrEqual(t, pause, limit)
				if limit > b.Max/2 {
					limit = b.Max
				} else {
					limit *= 2
				}
			}
			b.Reset()
		}
	})
}

func TestBackoffPausesAreSpread(t *testing.T) {
	b := Backoff{Min: time.Hour, Max: time.Hour}
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		pause := b.Next()
		shortest, longest = min(shortest, pause), max(longest, pause)
	}
	assert.Less(t, shortest, 35*time.Minute)
	assert.Greater(t, longest, 55*time.Minute)
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system, start := clock.System(), time.Now()
		assert.True(t, Sleep(t.Context(), system, time.Minute))
		assert.Equal(t, time.Minute, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, Sleep(ctx, system, time.Minute))
		assert.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}

func TestErrorsAreAlikeButForDigits(t *testing.T) {
	reset := errors.New("read tcp 127.0.0.1:41234: connection reset by peer")
	assert.True(t, Alike(reset, errors.New("read tcp 127.0.0.1:51235: connection reset by peer")))
	assert.False(t, Alike(reset, errors.New("read tcp 127.0.0.1:41234: EOF")))
	assert.False(t, Alike(nil, reset))
	assert.False(t, Alike(reset, nil))
	assert.False(t, Alike(nil, nil))
}
