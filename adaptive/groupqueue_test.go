package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// sharedScene is a limiter that resources share.
type sharedScene struct {
	t      *testing.T
	shared *latencyLimiter
	now    clock.Instant
}

func newSharedScene(t *testing.T, limit int) *sharedScene {
	t.Helper()
	r := Kind().WithDefaults(Rule{Inbound: true, Shared: true, InitialLimit: limit, MaxLimit: limit})
	env := rule.Env{Version: 1, Now: after(0), Seed: 1, Changed: func(clock.Instant, string, string, string) {}}
	return &sharedScene{t, newLatency(&r, env).(*latencyLimiter), env.Now}
}

func (s *sharedScene) of(resource string) *latencyLimiter {
	return s.shared.For(resource).(*latencyLimiter)
}

// sharedCall is a call of a sharedScene.
type sharedCall struct {
	of     *latencyLimiter
	start  clock.Instant
	ticket rule.Ticket
	waiter rule.Waiter
}

// call makes a call of a resource.
func (s *sharedScene) call(of *latencyLimiter) (*sharedCall, rule.Decision) {
	c := &sharedCall{of: of, start: s.now}
	var decision rule.Decision
	if c.ticket, decision = of.Acquire(s.normal()); decision == rule.Wait {
		decision = s.join(c)
	}
	s.checkQueues()
	return c, decision
}

// join has a call wait that has found that it cannot pass at once.
func (s *sharedScene) join(c *sharedCall) (decision rule.Decision) {
	patience := rule.Patience{Since: s.now, Until: s.now.Add(time.Hour), Wake: func() {}}
	c.waiter, c.ticket, decision = c.of.Join(s.normal(), patience)
	s.checkQueues()
	return decision
}

func (s *sharedScene) normal() rule.Call {
	c := rule.Call{Now: s.now, Tokens: 1}
	c.SetCaller(rule.PriorityNormal, true)
	return c
}

// calls makes calls of a resource, all of which get one decision.
func (s *sharedScene) calls(of *latencyLimiter, n int, want rule.Decision) (calls []*sharedCall) {
	for range n {
		c, decision := s.call(of)
		require.Equal(s.t, want, decision)
		calls = append(calls, c)
	}
	return calls
}

// end ends calls that have passed.
func (s *sharedScene) end(calls []*sharedCall, failed bool) {
	for _, c := range calls {
		c.of.Done(c.ticket, rule.Exit{Now: s.now, Start: c.start, Failed: failed})
		s.checkQueues()
	}
}

// checkQueues has the queue of each group be the calls that wait of the classes of that group.
func (s *sharedScene) checkQueues() {
	for _, g := range s.shared.groups {
		if g == nil {
			continue
		}
		total := 0
		var waiting []*class
		for _, c := range g.classes {
			if total += c.queued; c.queued > 0 {
				waiting = append(waiting, c)
			}
			for _, list := range c.waiting {
				for w := list.oldest; w != nil; w = w.newer {
					require.Same(s.t, g, w.group)
				}
			}
		}
		require.Equal(s.t, total, g.queue.total, "group %d", g.index)
		require.ElementsMatch(s.t, waiting, g.queue.classes, "group %d", g.index)
	}
}

// Clients of one resource give up while calls of another one wait. The next call of the first one shows it, and with
// that its resource goes apart: the call is not to wait in the queue that it came to.
func TestCallWhoseResourceGoesApartAsItJoinsAsksAgain(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 40)
	quick, hanging := s.of("quick"), s.of("hanging")
	for range 100 {
		calls := s.calls(quick, 2, rule.Pass)
		s.now = s.now.Add(100 * time.Millisecond)
		s.end(calls, false)
	}
	given, others := s.calls(hanging, 8, rule.Pass), s.calls(hanging, 10, rule.Pass)
	s.now = s.now.Add(300 * time.Millisecond)
	s.calls(quick, 22, rule.Pass)
	s.now = s.now.Add(time.Millisecond)
	s.calls(quick, 23, rule.Wait)
	late := &sharedCall{of: hanging, start: s.now}
	_, decision := hanging.Acquire(s.normal())
	require.Equal(t, rule.Wait, decision)
	s.end(given, true)
	require.Zero(t, hanging.class.group.Load().index)
	s.now = s.now.Add(time.Millisecond)

	assert.Equal(t, rule.Stale, s.join(late))
	common, apart := s.shared.groups[0], hanging.class.group.Load()
	require.NotSame(t, common, apart)
	assert.Equal(t, 5, common.queue.total, "as many quick calls have passed as calls under way are not theirs")

	s.end(others, false)
	passed := s.calls(hanging, 1, rule.Pass)
	waiting, decision := s.call(hanging)
	for ; decision == rule.Pass; waiting, decision = s.call(hanging) {
		passed = append(passed, waiting)
	}
	require.Equal(t, rule.Wait, decision)
	s.end(passed, false)
	_, _, decision = waiting.waiter.Poll(s.now)
	assert.Equal(t, rule.Pass, decision)
}

// A resource has left its group between the moment in which a call of it looked and that in which it has the lock: it
// neither begins a test of that group nor counts in one.
func TestCallOfAResourceThatHasLeftSaysNothingOfItsFormerGroup(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 1)
	stays, leaves := s.of("stays"), s.of("leaves")
	common := s.shared.groups[0]
	s.shared.mu.Lock()
	common.goApart(leaves.class, common.freeGroup(s.now), s.now)
	s.shared.mu.Unlock()
	s.calls(stays, 1, rule.Pass)

	common.noteFull(leaves.class, s.now)
	require.False(t, common.control.Testing())
	common.noteFull(stays.class, s.now)
	require.True(t, common.control.Testing())

	late := rule.Exit{Start: s.now, Now: s.now.Add(time.Hour), Failed: true}
	common.learnTest(leaves.class, late, true)
	assert.Zero(t, leaves.class.tested)
	common.learnTest(stays.class, late, true)
	assert.NotZero(t, stays.class.tested)
}

// A resource that becomes as slow as those under a limit goes there once it has been slow for a while: it may have had
// more calls than usual for a moment.
func TestResourceGoesUnderTheLimitOfOthersOnceItHasBeenAsSlowForAWhile(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 40)
	pool, quick := s.of("pool").class, s.of("quick").class
	common := s.shared.groups[0]
	apart := common.freeGroup(s.now)
	common.goApart(pool, apart, s.now)
	apart.control.Reached(s.now)
	apart.control.Enforce(s.now)
	for c, usual := range map[*class]float64{pool: 0.1, quick: 0.01} {
		c.usual.Set(usual, 100)
		c.recent = recent{calls: 3 * 100 * usual, ends: 100, span: 1, slow: true, calm: mark{at: s.now}}
	}

	s.now = s.now.Add(100 * time.Millisecond)
	common.sendApart(quick, s.now)
	assert.Same(t, common, quick.group.Load())

	s.now = s.now.Add(time.Second)
	common.sendApart(quick, s.now)
	assert.Same(t, apart, quick.group.Load())
}

// Under a limit, calls that usually take far longer than those of a slow resource go on without it unless they are clearly
// slow themselves: their mean is too uncertain to show that it has not grown by as many milliseconds.
func TestCallsThatTakeFarLongerThanSlowOnesGoOnWithoutTheirLimit(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		usual, now float64 // seconds
		rate       float64 // that is usual; 24 calls end in the last second
		spared     bool
	}{
		"far longer, as usual":            {0.1, 0.1, 24, true},
		"far longer, twice as long":       {0.1, 0.2, 24, false},
		"a few times as long, as usual":   {0.05, 0.05, 24, false},
		"far longer, and hardly measured": {0.1, 0, 24, false},
		"far longer, but more than usual": {0.1, 0.1, 5, false},
	} {
		s := newSharedScene(t, 40)
		slow, remote := s.of("slow"), s.of("remote")
		s.calls(slow, 1, rule.Pass)
		s.calls(remote, 1, rule.Pass)
		common := s.shared.groups[0]
		common.control.Reached(s.now)
		common.control.Enforce(s.now)
		slow.class.usual.Set(0.01, 100)
		slow.class.recent = recent{calls: 3, ends: 100, span: 1, slow: true}
		remote.class.usual.Set(of.usual, 100)
		remote.class.usual.Observe(limit.Window{Length: time.Second, Ends: 50, Ended: 50, Calls: 5, Times: 5, Squares: 1}, false)
		remote.class.recent = recent{calls: 25 * of.now, ends: 24, span: 1, fine: 10, rate: of.rate, held: 3, known: usualSpan}
		if of.now == 0 {
			remote.class.recent = recent{calls: of.usual, ends: 1, span: 1, fine: 10}
		}

		common.release(slow.class, s.now)
		assert.Equal(t, of.spared, remote.class.group.Load() != slow.class.group.Load(), name)
	}
}

// The control of a limit that only one resource is left under knows of its calls what is known of that resource: the
// response times of all vary much more, and too few calls of one would end in a window.
func TestLimitOfTheResourceThatIsLeftGoesByWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 40)
	quick, pool := s.of("quick").class, s.of("pool").class
	common := s.shared.groups[0]
	s.calls(s.of("quick"), 1, rule.Pass)
	s.calls(s.of("pool"), 1, rule.Pass)
	quick.usual.Set(0.001, 100)
	pool.usual.Set(0.2, 100)
	pool.weight = 100
	mixed := limit.Window{Length: time.Second, Ends: 1000, Ended: 1000, Calls: 2, Times: 2, Squares: 0.4}
	for range 10 {
		common.control.Close(mixed)
	}
	common.control.Reached(s.now)
	common.control.Enforce(s.now)

	to := common.part(func(c *class) bool { return c == quick }, s.now)
	require.Equal(t, []*class{pool}, to.classes)
	assert.InDelta(t, 1, pool.weight, 1e-9)
	assert.InDelta(t, 0.2, to.control.Baseline(), 1e-9)
	assert.InDelta(t, pool.usual.Variation(), to.control.Variation(), 1e-9)
	assert.Greater(t, common.control.Variation(), 10.)
}

// Of calls that take a second, a window takes five. That clients give up is clear as soon as enough have: the longer it
// takes to limit the calls, the more the service has to do for nobody.
func TestAWindowEndsAsSoonAsMostCallsFailLate(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 100)
	slow := s.of("slow")
	slow.class.usual.Set(1, 100)
	common := s.shared.groups[0]
	common.control.Verify(1)
	common.apply(s.now)
	calls := s.calls(slow, 90, rule.Pass)
	s.now = s.now.Add(2 * time.Second)
	common.beginWindow(s.now)
	for _, some := range [][]*sharedCall{calls[:60], calls[60:]} {
		s.now = s.now.Add(200 * time.Millisecond)
		s.end(some, true)
	}
	assert.True(t, common.control.Limited())
}

// A resource with few calls under way does not wait for the calls of others, unless these are more important.
func TestCallOfALightResourceWaitsForMoreImportantOnes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		heavy, light rule.Priority
		want         rule.Decision
	}{
		"as important":   {rule.PriorityNormal, rule.PriorityNormal, rule.Pass},
		"more important": {rule.PriorityNormal, rule.PriorityHigh, rule.Pass},
		"less important": {rule.PriorityNormal, rule.PriorityLow, rule.Wait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSharedScene(t, 40)
			heavy, light := s.of("heavy"), s.of("light")
			enter := func(of *latencyLimiter, p rule.Priority) rule.Decision {
				c := s.normal()
				c.SetCaller(p, true)
				_, decision := of.Acquire(c)
				if decision == rule.Wait {
					_, _, decision = of.Join(c, rule.Patience{Since: s.now, Until: s.now.Add(time.Hour), Wake: func() {}})
				}
				return decision
			}
			require.Equal(t, rule.Pass, enter(light, test.light))
			for range 39 {
				require.Equal(t, rule.Pass, enter(heavy, test.heavy))
			}
			require.Equal(t, rule.Wait, enter(heavy, test.heavy))
			assert.Equal(t, test.want, enter(light, test.light))
		})
	}
}

// That clients give up all calls is as clear with few of them, however much their response times vary.
func TestAWindowInWhichClientsGiveUpAllCallsIsShort(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		well bool
		want float64
	}{"all": {false, 25}, "all but one": {true, 50}} {
		s := newSharedScene(t, 100)
		slow := s.of("slow")
		slow.class.usual.Set(1, 100)
		common := s.shared.groups[0]
		common.control.Verify(1)
		common.apply(s.now)
		calls := s.calls(slow, 90, rule.Pass)
		s.now = s.now.Add(2 * time.Second)
		common.beginWindow(s.now)
		for _, some := range [][]*sharedCall{calls[:60], calls[60:70]} {
			s.now = s.now.Add(200 * time.Millisecond)
			s.end(some, true)
		}
		require.True(t, common.control.Limited(), name)
		require.InDelta(t, 50, common.control.Limit(), 1e-9, name)
		s.now = s.now.Add(6 * time.Second)
		s.end(calls[70:71], !of.well)
		s.end(calls[71:82], true)
		s.now = s.now.Add(200 * time.Millisecond)
		s.end(calls[82:83], true)
		assert.InDelta(t, of.want, common.control.Limit(), 1e-9, name)
	}
}
