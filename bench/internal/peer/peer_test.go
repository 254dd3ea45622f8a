package peer

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

func TestMain(m *testing.M) {
	stop, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

func TestLimitersLetPassWhatTheLimitAllows(t *testing.T) {
	limiters := slices.Concat(Limiters(Settings{}), PenstockVariants(Settings{}), Queues(Settings{}))
	for _, limiter := range limiters {
		t.Run(limiter.Name, func(t *testing.T) {
			try := fresh(t, limiter, Huge)
			for i := range 100 {
				require.True(t, try(i), "call %d", i)
			}
		})
	}
}

func TestLimitersRefuseWhatExceedsTheLimit(t *testing.T) {
	for _, limiter := range append(Limiters(Settings{}), PenstockVariants(Settings{})...) {
		if limiter.Name == "uber.Take" || limiter.Name == Adaptive {
			continue // the one waits, the other has no limit
		}
		t.Run(limiter.Name, func(t *testing.T) {
			try := fresh(t, limiter, 1)
			began, passed := time.Now(), 0
			for i := range 100 {
				if try(i) {
					passed++
				}
			}
			assert.LessOrEqual(t, passed, 2+int(time.Since(began).Seconds()))
			assert.Positive(t, passed)
		})
	}
}

func TestQueuesMakeCallsWait(t *testing.T) {
	for _, queue := range Queues(Settings{}) {
		t.Run(queue.Name, func(t *testing.T) {
			try := fresh(t, queue, 500)
			began := time.Now()
			for i := range 30 { // some let a few go at once
				require.True(t, try(i))
			}
			assert.Greater(t, time.Since(began), 15*2*time.Millisecond)
		})
	}
}

func TestValueLimitersLimitEachValueByItself(t *testing.T) {
	for _, limiter := range ValueLimiters() {
		t.Run(limiter.Name, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, Reset()) })
			try, err := limiter.New(ValueLimit{Limit: 3, Window: time.Hour, Places: 100})
			require.NoError(t, err)
			values := NewValues(10)
			for i := range values.Len() {
				value := values.At(i)
				passed := 0
				for range 10 {
					if try(value) {
						passed++
					}
				}
				assert.Equal(t, 3, passed, value)
			}
		})
	}
}

func TestFrameworksEnforceTheRulesThatWereLoadedLast(t *testing.T) {
	for _, framework := range Frameworks() {
		t.Run(framework.Name, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, Reset()) })
			guards := framework.New(Settings{})
			assert.True(t, guards.Call("a"), "no rule yet")

			open := guards.Prepare(RulesOn([]string{"a"}, Reject))
			closed := guards.Prepare([]Rule{{Resource: "a", Limit: 0}})
			require.NoError(t, closed())
			assert.False(t, guards.Call("a"))
			_, err := guards.Enter("a")
			require.Error(t, err)

			require.NoError(t, open())
			assert.True(t, guards.Call("a"))
			exit, err := guards.Enter("a")
			require.NoError(t, err)
			exit()
		})
	}
}

func TestFrameworksWarmUp(t *testing.T) {
	const limit, calls = 300, 600
	for _, framework := range Frameworks() {
		t.Run(framework.Name, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, Reset()) })
			guards := framework.New(Settings{Clock: clock.NewVirtual(time.Unix(1_800_000_000, 0))})
			require.NoError(t, guards.Prepare([]Rule{{Resource: "a", Limit: limit, Kind: WarmUp}})())
			passed := 0
			for range calls {
				if guards.Call("a") {
					passed++
				}
			}
			assert.InDelta(t, limit/3, passed, 10, "at the start of the warm-up, by the clock in the settings")
		})
	}
}

func TestProtectionsLetCallsPass(t *testing.T) {
	for kind, protections := range protections() {
		for _, p := range protections {
			t.Run(kind+"/"+p.Name, func(t *testing.T) {
				t.Cleanup(func() { require.NoError(t, Reset()) })
				try, err := p.Passing()
				require.NoError(t, err)
				for i := range 100 {
					require.True(t, try(i), "call %d", i)
				}
			})
		}
	}
}

func TestProtectionsRefuseAllCalls(t *testing.T) {
	for kind, protections := range protections() {
		for _, p := range protections {
			if p.Refusing == nil {
				continue
			}
			t.Run(kind+"/"+p.Name, func(t *testing.T) {
				t.Cleanup(func() { require.NoError(t, Reset()) })
				try, err := p.Refusing()
				require.NoError(t, err)
				for i := range 100 {
					require.False(t, try(i), "call %d", i)
				}
			})
		}
	}
}

func TestResetRemovesTheRulesOfSentinel(t *testing.T) {
	for _, p := range []Protection{sentinelIsolation(), sentinelBreaker()} {
		_, err := p.Refusing()
		require.NoError(t, err)
		require.False(t, sentinelCall(0))
		require.NoError(t, Reset())
		assert.True(t, sentinelCall(0))
	}
	require.NoError(t, Reset())
}

func TestPenstockRulesLetCallsPass(t *testing.T) {
	for _, rules := range PenstockRules() {
		t.Run(rules.Name, func(t *testing.T) {
			engine, err := rules.NewEngine()
			require.NoError(t, err)
			try := byName(engine)
			for i := range 100 {
				require.True(t, try(i), "call %d", i)
			}
		})
	}
}

func protections() map[string][]Protection {
	return map[string][]Protection{"isolation": Isolations(), "breaker": Breakers(), "composition": Compositions(), "adaptive": Adaptives()}
}

// fresh returns a new limiter that is gone when the test ends.
func fresh(t *testing.T, limiter Limiter, limit int) Try {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, Reset()) })
	try, err := limiter.New(limit)
	require.NoError(t, err)
	return try
}
