package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// While the clock stands still, and after jumps of hours and days, a value gets what it
// can have saved, and no more.
func TestValuesGetNoMoreWhenTheClockStandsStillOrJumps(t *testing.T) {
	for name, test := range map[string]struct {
		rule hotparam.Rule
		full int // calls that pass at one instant after a long time
	}{
		"token bucket":        {hotparam.Rule{Limit: 10, Burst: 25}, 25},
		"tiny limit":          {hotparam.Rule{Limit: 1e-6}, 1},
		"shortest window":     {hotparam.Rule{Limit: 3, Window: time.Millisecond}, 3},
		"longest window":      {hotparam.Rule{Limit: 7, Window: 24 * time.Hour}, 7},
		"throttle":            {hotparam.Rule{Limit: 10, Algorithm: hotparam.Throttle}, 1},
		"slow throttle":       {hotparam.Rule{Limit: 0.5, Window: 24 * time.Hour, Algorithm: hotparam.Throttle}, 1},
		"window of 10 ms":     {hotparam.Rule{Limit: 4, Window: 10 * time.Millisecond, Algorithm: hotparam.SlidingWindow}, 4},
		"window of a day":     {hotparam.Rule{Limit: 4, Window: 24 * time.Hour, Algorithm: hotparam.SlidingWindow}, 4},
		"penalty of a day":    {hotparam.Rule{Limit: 1, Penalty: hotparam.Penalty{After: 9, Within: 24 * time.Hour, For: 24 * time.Hour}}, 1},
		"blocked":             {hotparam.Rule{Limit: 0}, 0},
		"some larger, by far": {hotparam.Rule{Limit: 2, Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("x*"), Value: 2e6})}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, 5, test.rule)
			fills := hotparam.Kind().WithDefaults(test.rule)
			full := fills.Window * 2
			if fills.Algorithm == hotparam.TokenBucket && fills.Limit > 0 {
				full = time.Duration(min(cmp.Or(fills.Burst, max(1, fills.Limit))/fills.Limit*float64(fills.Window)*1.01, 290*365*24*float64(time.Hour)))
			} else if fills.Limit > 0 {
				full = time.Duration(float64(full) / min(1, fills.Limit))
			}
			full = max(full, fills.Penalty.For)
			for i, jump := range []time.Duration{0, full, full * 3, full + time.Hour, full + 24*time.Hour, full + 400*24*time.Hour, full} {
				if full > 24*365*time.Hour && i > 1 {
					break // longer than clocks count
				}
				s.clock.Advance(jump)
				for v := range 20 {
					passed := 0
					for range test.full + 10 {
						if s.call(core.String("user", fmt.Sprint(v))) {
							passed++
						}
					}
					require.Equal(t, test.full, passed, "value %d after %v", v, jump)
				}
			}
		})
	}
}

func TestCallsOfManyTokensGetNoMore(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt32
	call := func(s *service, tokens int) bool { return s.call(core.String("user", "a"), core.Tokens(tokens)) }

	s := newService(t, 5, hotparam.Rule{Limit: 1e9, Burst: 1e9})
	assert.False(t, call(s, most))
	assert.False(t, call(s, 1e9+1))
	assert.True(t, call(s, 1e9))
	assert.False(t, call(s, 1))
	s.clock.Advance(time.Nanosecond)
	assert.True(t, call(s, 1))
	assert.False(t, call(s, 1e6))
	s.clock.Advance(time.Millisecond)
	assert.True(t, call(s, 1e6))
	assert.False(t, call(s, 2))

	s = newService(t, 5, hotparam.Rule{Limit: 1e-6, Burst: 10})
	assert.True(t, call(s, 10))
	s.clock.Advance(1e6*time.Second - time.Microsecond)
	assert.False(t, call(s, 1))
	s.clock.Advance(time.Microsecond)
	assert.True(t, call(s, 1))

	s = newService(t, 5, hotparam.Rule{Limit: 1e9, Algorithm: hotparam.SlidingWindow})
	assert.False(t, call(s, most))
	assert.True(t, call(s, 1e9))
	assert.False(t, call(s, 1))
	s.clock.Advance(time.Second)
	assert.True(t, call(s, 1e9))

	s = newService(t, 5, hotparam.Rule{Limit: 1e9, Window: 24 * time.Hour, Algorithm: hotparam.Throttle})
	assert.False(t, call(s, most))
	assert.True(t, call(s, 1e9))
	s.clock.Advance(24*time.Hour - time.Microsecond)
	assert.False(t, call(s, 1e9))
	s.clock.Advance(time.Microsecond)
	assert.True(t, call(s, 1e9))

	s = newService(t, 5, hotparam.Rule{Concurrency: 1})
	assert.True(t, call(s, most))
}

// Debt by Settle is bounded: nobody is locked out for good, whatever is settled.
func TestSettledTokensAreOwedAndNeverGained(t *testing.T) {
	for name, limit := range map[string]hotparam.Rule{
		"token bucket":   {Limit: 10, Burst: 20},
		"sliding window": {Limit: 20, Algorithm: hotparam.SlidingWindow},
		"throttle":       {Limit: 10, Algorithm: hotparam.Throttle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, 5, limit)
			random := rand.New(rand.NewPCG(1, 2))
			var taken, given float64 // tokens
			seconds := 0.0
			for range 20_000 {
				s.clock.Advance(10 * time.Millisecond)
				seconds += 0.01
				tokens := 1 + random.IntN(5)
				if limit.Algorithm == hotparam.Throttle {
					tokens = 1
				}
				guard, passes := s.enter(core.String("user", "a"), core.Tokens(tokens))
				if !passes {
					continue
				}
				taken += float64(tokens)
				actual := random.IntN(2 * tokens)
				guard.Settle(actual)
				guard.Settle(actual) // settled for good
				guard.Settle(tokens)
				guard.Settle(actual)
				guard.Exit()
				guard.Exit()
				if actual > tokens || limit.Algorithm != hotparam.Throttle {
					given += float64(actual - tokens)
				}
			}
			most := limit.Limit*seconds + max(limit.Burst, limit.Limit) + 5
			if limit.Algorithm == hotparam.SlidingWindow {
				most = limit.Limit * (seconds/0.9 + 2) // debt over the window's limit ends with it
			}
			assert.LessOrEqual(t, taken+given, most)
			assert.Greater(t, taken+given, most*0.5)
		})
	}
	for _, limit := range []hotparam.Rule{{Limit: 10}, {Limit: 10, Algorithm: hotparam.SlidingWindow}, {Limit: 10, Algorithm: hotparam.Throttle}} {
		s := newService(t, 5, limit)
		guard, passes := s.enter(core.String("user", "a"))
		require.True(t, passes)
		for range 10 {
			guard.Settle(math.MaxInt32)
			guard.Settle(1)
			guard.Settle(math.MaxInt32)
		}
		guard.Exit()
		assert.False(t, s.call(core.String("user", "a")))
		s.clock.Advance(50 * 365 * 24 * time.Hour)
		assert.True(t, s.call(core.String("user", "a")), "%v", limit.Algorithm)
	}
}

// backward is a clock that breaks its contract: it goes back.
type backward struct {
	*clock.Virtual
	at atomic.Int64
}

func (b *backward) Now() clock.Instant { return clock.Instant(b.at.Load()) }

// A clock never goes back, by its contract. If one does, values get no more than by the
// latest time that it has shown.
func TestValuesGetNoMoreWhenTheClockGoesBack(t *testing.T) {
	for name, limit := range map[string]hotparam.Rule{
		"token bucket":   {Limit: 10},
		"sliding window": {Limit: 10, Algorithm: hotparam.SlidingWindow},
		"throttle":       {Limit: 10, Algorithm: hotparam.Throttle},
		"penalty":        {Limit: 10, Penalty: hotparam.Penalty{After: 100, Within: time.Second, For: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Unix(1_700_000_000, 0)
			b := &backward{Virtual: clock.NewVirtual(start)}
			engine := core.New(core.Config{Clock: b, Seed: 9, Logger: slog.New(slog.DiscardHandler)})
			t.Cleanup(engine.Close)
			limit.Resource, limit.Param = "login", rule.StringsOf("user")
			b.at.Store(start.UnixNano())
			require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{limit}}))
			random := rand.New(rand.NewPCG(3, 4))
			passed, now, latest := 0, start.UnixNano(), start.UnixNano()
			for range 50_000 {
				switch random.IntN(100) {
				case 0:
					now -= random.Int64N(int64(time.Second))
				case 1:
					now = max(0, now-random.Int64N(int64(time.Hour)))
				default:
					now += random.Int64N(int64(10 * time.Millisecond))
				}
				latest = max(latest, now)
				b.at.Store(now)
				guard, err := engine.Entry(context.Background(), "login", core.String("user", "a"))
				if err == nil {
					passed++
				}
				guard.Exit()
			}
			elapsed := float64(latest-start.UnixNano()) / 1e9
			assert.LessOrEqual(t, float64(passed), 10+10*(elapsed/0.9+1))
			assert.Positive(t, passed)
		})
	}
}
