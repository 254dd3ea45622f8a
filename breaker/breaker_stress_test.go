package breaker_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const callers = 64

// crowd is many goroutines at one breaker, on a time that they move themselves.
type crowd struct {
	current atomic.Pointer[limiter]
	now     atomic.Int64

	mu      sync.Mutex
	changes []report
}

type report struct {
	at       clock.Instant
	from, to string
}

func newCrowd(r breaker.Rule) *crowd {
	c := &crowd{}
	c.now.Store(int64(epoch))
	l := breaker.Kind().Of(breaker.Kind().WithDefaults(r)).NewLimiter(c.env(1)).(limiter)
	c.current.Store(&l)
	return c
}

func (c *crowd) env(version uint64) rule.Env {
	return rule.Env{Version: version, Now: c.time(), Changed: c.changed}
}

func (c *crowd) time() clock.Instant { return clock.Instant(c.now.Load()) }

func (c *crowd) limiter() limiter { return *c.current.Load() }

func (c *crowd) changed(at clock.Instant, from, to, _ string) {
	c.limiter().Status(at) // would deadlock if the breaker were locked
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, report{at, from, to})
}

// acquire asks for a call, as the engine does: again when the version is stale.
func (c *crowd) acquire() (limiter, rule.Ticket, clock.Instant, rule.Decision) {
	for {
		l, now := c.limiter(), c.time()
		if ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1}); decision != rule.Stale {
			return l, ticket, now, decision
		}
	}
}

// reload brings another version into force. Calls come to it before it is activated.
func (c *crowd) reload(r breaker.Rule, version uint64) {
	l := breaker.Kind().Of(breaker.Kind().WithDefaults(r)).Adopt(c.limiter(), c.env(version)).(limiter)
	c.current.Store(&l)
	l.Activate(c.time())
}

// run has every caller do something so often.
func (c *crowd) run(times int, act func(caller, i int)) {
	var acting sync.WaitGroup
	for caller := range callers {
		acting.Go(func() {
			for i := range times {
				act(caller, i)
			}
		})
	}
	acting.Wait()
}

// checkChanges asserts that no report of a change is lost, doubled or out of order.
func (c *crowd) checkChanges(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	state, at := breaker.Closed, epoch
	for _, change := range c.changes {
		require.Equal(t, state, change.from)
		require.NotEqual(t, state, change.to)
		require.GreaterOrEqual(t, change.at, at)
		state, at = change.to, change.at
	}
	require.Equal(t, c.limiter().Status(at).State, state)
}

// counting returns a rule that opens at one more bad call than the test makes.
func counting(bad int) breaker.Rule {
	return breaker.Rule{Resource: "r", Strategy: breaker.ErrorCount, Threshold: float64(bad + 1), Window: 10 * time.Second}
}

// checkCounted asserts that the window holds all calls, and that one more bad one opens.
func (c *crowd) checkCounted(t *testing.T, calls, bad int) {
	t.Helper()
	status := c.limiter().Status(c.time())
	assert.Equal(t, breaker.Closed, status.State)
	assert.Equal(t, []float64{float64(calls), float64(bad)}, status.Gauges[:2])
	l, ticket, start, _ := c.acquire()
	l.Done(ticket, rule.Exit{Now: start, Start: start, Failed: true})
	assert.Equal(t, breaker.Open, l.Status(start).State, "one more")
	c.checkChanges(t)
}

// Some outcomes are of an earlier bucket, which takes a lock each time; most are not.
func TestNoOutcomeIsLostAmongGoroutines(t *testing.T) {
	t.Parallel()
	const times = 20_000
	c := newCrowd(counting(callers * times / 4))
	c.now.Add(int64(time.Second))
	l := c.limiter()
	c.run(times, func(caller, i int) {
		now := epoch.Add(time.Second)
		if caller%8 == 0 && i%16 == 0 {
			now = epoch
		}
		ticket, _ := l.Acquire(rule.Call{Now: now})
		l.Done(ticket, rule.Exit{Now: now, Start: now, Failed: i%4 == 0})
	})
	c.checkCounted(t, callers*times, callers*times/4)
}

func TestNoOutcomeIsLostOverBucketsAndReloads(t *testing.T) {
	t.Parallel()
	const times = 5000
	r := counting(callers * times / 4)
	c := newCrowd(r)
	c.run(times, func(caller, i int) {
		if caller == 0 {
			r.MinCalls = 1 + i
			c.reload(r, uint64(2+i))
		}
		l, ticket, start, decision := c.acquire()
		if decision != rule.Pass {
			t.Error("a closed breaker refuses")
			return
		}
		if caller == 1 && i%(times/10) == times/20 && i > times/10 { // nine times: all buckets of the window
			c.now.Add(int64(time.Second))
		}
		l.Done(ticket, rule.Exit{Now: c.time(), Start: start, Failed: i%4 == 0})
		if i%100 == 0 {
			l.Status(c.time())
		}
	})
	assert.Equal(t, epoch.Add(9*time.Second), c.time())
	c.checkCounted(t, callers*times, callers*times/4)
}

func TestBreakerOpensByTheOutcomeThatIsOneTooMany(t *testing.T) {
	t.Parallel()
	for range 200 {
		r := breaker.Rule{Resource: "r", Threshold: 0.5, MinCalls: callers}
		c := newCrowd(r)
		tickets := make([]rule.Ticket, callers)
		for i := range tickets {
			_, tickets[i], _, _ = c.acquire()
		}
		c.run(1, func(caller, _ int) { // the last outcome reaches the threshold
			c.limiter().Done(tickets[caller], rule.Exit{Now: epoch, Start: epoch, Failed: caller%2 == 0})
		})
		require.Equal(t, breaker.Open, c.limiter().Status(epoch).State)
		require.Len(t, c.changes, 1)
	}
}

func TestOnlySoManyProbesPass(t *testing.T) {
	t.Parallel()
	r := breaker.Rule{
		Resource: "r", Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 7, ProbeTimeout: time.Hour,
	}
	c := newCrowd(r)
	for round := range 200 {
		_, ticket, start, _ := c.acquire()
		c.limiter().Done(ticket, rule.Exit{Now: start, Start: start, Failed: true})
		c.now.Add(int64(time.Second))

		var mu sync.Mutex
		var probes []rule.Ticket
		var passed, givenBack int
		c.run(20, func(caller, i int) {
			l, ticket, now, decision := c.acquire()
			if decision != rule.Pass {
				return
			}
			if (caller+i)%3 == 0 {
				l.GiveBack(now, ticket, 1)
				ticket = 0
			}
			mu.Lock()
			defer mu.Unlock()
			passed++
			if ticket == 0 {
				givenBack++
				return
			}
			probes = append(probes, ticket)
		})
		require.LessOrEqual(t, passed-givenBack, 7, "round %d", round)
		for len(probes) < 7 { // places that were held when the others came, and then given back
			_, ticket, _, decision := c.acquire()
			require.Equal(t, rule.Pass, decision)
			probes = append(probes, ticket)
		}
		_, _, _, decision := c.acquire()
		require.Equal(t, rule.Block, decision)
		require.Equal(t, breaker.HalfOpen, c.limiter().Status(c.time()).State)
		c.run(1, func(caller, _ int) {
			if caller < len(probes) {
				c.limiter().Done(probes[caller], rule.Exit{Now: c.time(), Start: c.time()})
			}
		})
		require.Equal(t, breaker.Closed, c.limiter().Status(c.time()).State)
	}
	c.checkChanges(t)
	assert.Len(t, c.changes, 3*200)
}

func TestProbesUnderWayNeverExceedTheRule(t *testing.T) {
	t.Parallel()
	r := breaker.Rule{
		Resource: "r", Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 3, ProbeTimeout: time.Hour,
	}
	c := newCrowd(r)
	_, ticket, start, _ := c.acquire()
	c.limiter().Done(ticket, rule.Exit{Now: start, Start: start, Failed: true})
	c.now.Add(int64(time.Second))
	var underWay, highest atomic.Int64
	c.run(2000, func(_, i int) {
		l, ticket, now, decision := c.acquire()
		if decision != rule.Pass {
			return
		}
		n := underWay.Add(1)
		for seen := highest.Load(); n > seen && !highest.CompareAndSwap(seen, n); seen = highest.Load() {
		}
		underWay.Add(-1) // before its place is free
		if i%2 == 0 {
			l.GiveBack(now, ticket, 1)
		} else {
			l.Done(ticket, rule.Exit{Now: now, Start: now, Ignored: true})
		}
	})
	assert.Positive(t, highest.Load())
	assert.LessOrEqual(t, highest.Load(), int64(3))
	assert.Equal(t, breaker.HalfOpen, c.limiter().Status(c.time()).State)
}

// Calls, reloads, forced states and the clock race. The reports still form a chain, and
// the breaker still works afterwards.
func TestStormOfEverything(t *testing.T) {
	t.Parallel()
	rules := []breaker.Rule{
		{Threshold: 0.5, MinCalls: 10, Window: time.Second, OpenFor: 50 * ms, Probes: 3, ProbeTimeout: 100 * ms},
		{Threshold: 0.2, MinCalls: 5, Window: 100 * ms, OpenFor: 10 * ms, MaxOpenFor: time.Second, Probes: 20},
		{
			Strategy: breaker.SlowRatio, SlowAfter: 5 * ms, Threshold: 0.1, MinCalls: 1, Window: time.Second,
			OpenFor: ms, Probes: 1, ProbeTimeout: ms,
		},
	}
	for i := range rules {
		rules[i].Resource = "r"
		require.Empty(t, breaker.Kind().Faults(rules[i]))
	}
	c := newCrowd(rules[0])
	c.run(3000, func(caller, i int) {
		random := rand.New(rand.NewPCG(uint64(caller), uint64(i)))
		c.now.Add(random.Int64N(int64(100 * time.Microsecond)))
		switch {
		case caller == 0 && i%10 == 0:
			c.reload(rules[i/10%len(rules)], uint64(2+i))
		case caller == 1 && i%100 == 0:
			c.limiter().Control(c.time(), []string{breaker.Open, "", breaker.Closed, ""}[i/100%4])
		case i%50 == 0:
			c.limiter().Status(c.time())
			c.limiter().Idle(c.time())
		}
		l, ticket, start, decision := c.acquire()
		switch {
		case decision != rule.Pass:
			if wait := l.RetryAfter(rule.Call{Now: start}); wait < 0 {
				t.Errorf("to be retried after %v", wait)
			}
		case random.IntN(10) == 0:
			l.GiveBack(start, ticket, 1)
		case random.IntN(10) != 0: // one in ten never ends
			l.Done(ticket, rule.Exit{Now: c.time(), Start: start, Failed: random.IntN(3) == 0, Ignored: random.IntN(9) == 0})
		}
	})
	c.limiter().Control(c.time(), breaker.Open)
	c.limiter().Control(c.time(), "")
	c.checkChanges(t)
	assert.Greater(t, len(c.changes), 50)
	c.reload(rules[0], 1_000_000)
	for range 10 {
		l, ticket, start, decision := c.acquire()
		require.Equal(t, rule.Pass, decision)
		l.Done(ticket, rule.Exit{Now: start, Start: start, Failed: true})
	}
	_, _, _, decision := c.acquire()
	assert.Equal(t, rule.Block, decision)
}
