package core_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// A quota of an hour that is replaced by another rule every seven minutes, and put
// back, lets no more through in the hour than it says.
func TestQuotaHoldsHoweverOftenItIsReplacedAndPutBack(t *testing.T) {
	const hour = 1000
	quota := flow.Rule{Resource: "r", Limit: hour, Window: time.Hour}
	for name, other := range map[string]flow.Rule{
		"by nothing a minute":     {Resource: "r", Limit: 0, Window: time.Minute},
		"by a few a minute":       {Resource: "r", Limit: 5, Window: time.Minute},
		"by other parts":          {Resource: "r", Limit: hour, Window: time.Hour, Buckets: 6},
		"by a strict window":      {Resource: "r", Limit: hour, Window: time.Hour, Strict: true},
		"by a window of the hour": {Resource: "r", Limit: hour, Window: time.Hour, Algorithm: flow.FixedWindow},
		"by a throttle":           {Resource: "r", Limit: 10, Window: time.Minute, Algorithm: flow.Throttle},
		"by a closed throttle":    {Resource: "r", Limit: 0, Algorithm: flow.Throttle},
		"by a token bucket":       {Resource: "r", Limit: 20, Window: time.Hour, Algorithm: flow.TokenBucket},
		"by a warm-up":            {Resource: "r", Limit: 10, WarmUp: flow.WarmUp{Period: time.Minute}, Window: 10 * time.Second},
	} {
		for _, patterned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a pattern: %v", name, patterned), func(t *testing.T) {
				quota, other := quota, other
				quota.Name, other.Name = "quota", "quota"
				if patterned {
					quota.Resource, quota.Match = "", "r*"
					other.Resource, other.Match = "", "r*"
				}
				e, c := newEngine(t, quota)
				passed, underOther := 0, 0
				for i := range 10 { // 5 minutes more than an hour
					passed += enter(e, "r", 2*hour)
					c.Advance(6*time.Minute + 30*time.Second)
					if i == 8 {
						break
					}
					load(t, e, other)
					for range 7 {
						c.Advance(time.Second)
						underOther += enter(e, "r", 100)
					}
					load(t, e, quota)
				}
				assert.LessOrEqual(t, passed, hour)
				assert.GreaterOrEqual(t, passed+underOther, hour)
			})
		}
	}
}

// However many goroutines call while the rule changes its shape, and the way it
// counts: an hour's quota is let through once.
func TestQuotaHoldsUnderCallsWhileItChangesItsShape(t *testing.T) {
	const quota = 2000
	shapes := []flow.Rule{
		{Resource: "r", Limit: quota, Window: time.Hour},
		{Resource: "r", Limit: quota, Window: time.Hour, Buckets: 60},
		{Resource: "r", Limit: quota, Window: time.Minute},
		{Resource: "r", Limit: quota, Window: time.Second, Algorithm: flow.Throttle},
		{Resource: "r", Limit: quota, Window: time.Hour, Strict: true},
		{Resource: "r", Limit: quota, Window: time.Hour, Algorithm: flow.TokenBucket},
	}
	// The token bucket holds the quota and then gives what flows in; the clock stands.
	e, _ := newEngine(t, shapes[0])
	var passed atomic.Int64
	var callers, reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{shapes[i%len(shapes)]}}))
			}
		}
	})
	for range 8 {
		callers.Go(func() {
			for range 4000 {
				if guard, err := e.Entry(t.Context(), "r"); err == nil {
					passed.Add(1)
					guard.Exit()
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	reloads.Wait()
	assert.LessOrEqual(t, passed.Load(), int64(quota))
	load(t, e, shapes[0])
	enter(e, "r", 3*quota)
	status := e.Quotas("r")
	require.Len(t, status, 1)
	assert.Zero(t, status[0].Quota.Remaining)
}

func TestRuleThatIsTakenOutAndComesBackCountsWhatHasPassed(t *testing.T) {
	quota := flow.Rule{Resource: "r", Limit: 100, Window: time.Hour}
	shared := flow.Rule{Name: "shared", Match: "s*", Shared: true, Limit: 100, Window: time.Hour}
	each := flow.Rule{Name: "each", Match: "e*", Limit: 100, Window: time.Hour}
	e, c := newEngine(t, quota, shared, each)
	for _, name := range []string{"r", "s1", "e1"} {
		require.Equal(t, 60, enter(e, name, 60))
	}
	load(t, e)
	c.Advance(10 * time.Minute)
	for _, name := range []string{"r", "s1", "e1"} {
		require.Equal(t, 50, enter(e, name, 50), "calls that no rule counts")
	}
	load(t, e, quota, shared, each)
	assert.Equal(t, 40, enter(e, "r", 200))
	assert.Equal(t, 40, enter(e, "s2", 200))
	assert.Equal(t, 100, enter(e, "e1", 200), "a limit of a resource among others starts anew")

	load(t, e)
	throttled := quota
	throttled.Buckets, throttled.Algorithm = 0, flow.Throttle
	load(t, e, throttled)
	assert.Zero(t, enter(e, "r", 1), "its last call was just now")
	load(t, e)
	load(t, e, flow.Rule{Name: "r", Resource: "q", Limit: 100, Window: time.Hour})
	assert.Equal(t, 100, enter(e, "q", 200), "the name stands for another resource")

	c.Advance(2 * time.Hour)
	load(t, e, quota)
	assert.Equal(t, 100, enter(e, "r", 200), "it is long ago")
}

func TestRulesThatAreTakenOutAreRememberedInBoundedMemory(t *testing.T) {
	e, c := newEngine(t)
	first := flow.Rule{Resource: "first", Limit: 1, Window: time.Hour}
	load(t, e, first)
	require.Equal(t, 1, enter(e, "first", 2))
	for i := range 12 {
		var many []flow.Rule
		for j := range 100 {
			many = append(many, flow.Rule{Resource: fmt.Sprintf("r%d.%d", i, j), Limit: 1, Window: time.Hour})
		}
		load(t, e, many...)
		for _, rule := range many {
			require.Equal(t, 1, enter(e, rule.Resource, 1))
		}
		c.Advance(time.Second)
	}
	load(t, e, first)
	assert.Equal(t, 1, enter(e, "first", 1), "more than a thousand were taken out since")
	load(t, e, flow.Rule{Resource: "r10.7", Limit: 1, Window: time.Hour})
	assert.Zero(t, enter(e, "r10.7", 1))
}
