package isolation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

func TestLoweredLimitLetsCallsUnderWayFinish(t *testing.T) {
	t.Parallel()
	r := pooled()
	r.Limit = 3
	play(t, r, []step{
		{0, "call a", "pass"},
		{0, "call b", "pass"},
		{0, "call c", "pass"},
		{0, "call d", "wait"},
		{0, "limit 1", ""},
		{0, "status", "3/1, 1 wait, highest 3"},
		{0, "end a", ""},
		{0, "turn d", "wait 1s"},
		{0, "end b", ""},
		{0, "turn d", "wait 1s"}, // c has the only place
		{0, "end c", ""},
		{0, "turn d", "pass"},
		{0, "status", "1/1, 0 wait, highest 3"},
	})
	play(t, isolation.Rule{Resource: "r", Limit: 2}, []step{ // without a queue
		{0, "call a", "pass"},
		{0, "call b", "pass"},
		{0, "limit 1", ""},
		{0, "end a", ""},
		{0, "call c", "block"},
		{0, "end b", ""},
		{0, "call c", "pass"},
	})
}

func TestRaisedLimitLetsWaitersPassInOrder(t *testing.T) {
	t.Parallel()
	steps := []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{0, "call d", "wait"},
		{1 * ms, "limit 3", ""},
		{1 * ms, "status", "3/3, 1 wait, highest 3"},
	}
	play(t, pooled(), append(steps,
		step{1 * ms, "turn b", "pass"}, step{1 * ms, "turn c", "pass"}, step{1 * ms, "turn d", "wait 999ms"}))
	play(t, newestFirst(), append(steps,
		step{1 * ms, "turn d", "pass"}, step{1 * ms, "turn c", "pass"}, step{1 * ms, "turn b", "wait 999ms"}))
}

func TestLimitChangedToZeroRefusesThoseWhoWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "limit 0", ""},
		{0, "wakes b", "1"},
		{0, "turn b", "block"},
		{0, "end a", ""},
		{0, "call c", "block"},
	})
}

func TestOldVersionIsStaleOnceANewerOneIsInForce(t *testing.T) {
	t.Parallel()
	play(t, two(), []step{
		{0, "call a", "pass"},
		{0, "adopt 9", ""},
		{0, "old b", "pass"}, // not in force yet
		{0, "old c", "block"},
		{0, "activate", ""},
		{0, "old c", "stale"},
		{0, "call c", "pass"},
		{0, "end a", ""}, // by the first version, as all ends here
		{0, "status", "2/9, 0 wait, highest 3"},
	})
	play(t, two(), []step{
		{0, "adopt 9", ""},
		{0, "call a", "pass"}, // asking a newer version puts it in force
		{0, "old b", "stale"},
		{0, "activate", ""},
		{0, "status", "1/9, 0 wait, highest 1"},
	})
}

func TestJoinOfAnOldVersionIsStale(t *testing.T) {
	t.Parallel()
	old := newLimiter(t, pooled())
	call := rule.Call{Now: epoch, Tokens: 1}
	old.Acquire(call)
	_, decision := old.Acquire(call)
	assert.Equal(t, rule.Wait, decision)
	adopt(t, old, pooled(), 2).Activate(epoch)
	waiter, _, decision := old.Join(call, patience(func() {}))
	assert.Nil(t, waiter)
	assert.Equal(t, rule.Stale, decision)
}

func TestJoinPassesWhenAPlaceHasBecomeFree(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, pooled())
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	_, decision := l.Acquire(call)
	assert.Equal(t, rule.Wait, decision)
	l.Done(0, rule.Exit{Now: epoch})
	waiter, _, decision := l.Join(call, patience(func() {}))
	assert.Nil(t, waiter)
	assert.Equal(t, rule.Pass, decision)
	assert.Equal(t, 1, gaugesOf(l, epoch).inFlight)
}

func TestVersionThatIsNeverActivatedChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, pooled())
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	waiter, _, _ := l.Join(call, patience(func() {}))
	r := pooled()
	r.Limit = 0
	adopt(t, l, r, 2)
	_, _, decision := waiter.Poll(epoch)
	assert.Equal(t, rule.Wait, decision)
	l.Done(0, rule.Exit{Now: epoch})
	_, _, decision = waiter.Poll(epoch)
	assert.Equal(t, rule.Pass, decision)
}

func TestWaitersGoOnUnderAChangedMaxWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{500 * ms, "maxWait 2s", ""},
		{1 * second, "turn b", "wait 1s"},
		{1500 * ms, "call c", "wait"},
		{1600 * ms, "maxWait 1600ms", ""},
		{1600 * ms, "wakes b", "1"}, // its wait ends sooner than it knew
		{1600 * ms, "turn b", "block"},
		{1600 * ms, "turn c", "wait 1.5s"},
		{1700 * ms, "maxWait 100ms", ""},
		{1700 * ms, "wakes c", "2"},
		{1700 * ms, "end a", ""},
		{1700 * ms, "turn c", "block"}, // it ended at 1.6 s
	})
}

func TestMaxWaitChangedToZeroEndsAllWaits(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, pooled())
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	first, _, _ := l.Join(call, patience(func() {}))
	second, _, _ := l.Join(call, patience(func() {}))
	adopt(t, l, two(), 2).Activate(epoch)
	_, _, decision := first.Poll(epoch)
	assert.Equal(t, rule.Pass, decision, "the raised limit has a place for one")
	_, _, decision = second.Poll(epoch)
	assert.Equal(t, rule.Block, decision)
}

func TestLoweredMaxQueueKeepsThoseWhoWait(t *testing.T) {
	t.Parallel()
	steps := []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{0, "call d", "wait"},
		{0, "maxQueue 1", ""},
		{0, "status", "1/1, 3 wait, highest 1"},
	}
	play(t, pooled(), append(steps,
		step{0, "call e", "block"},
		step{0, "end a", ""}, step{0, "turn b", "pass"},
		step{0, "call e", "block"}))
	play(t, newestFirst(), append(steps,
		step{0, "call e", "wait"},
		step{0, "turn b", "block"}, step{0, "turn c", "block"}, step{0, "turn d", "block"},
		step{0, "status", "1/1, 1 wait, highest 1"}))
}

func TestChangedOrderHoldsForThoseWhoWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{0, "order lifo", ""},
		{0, "end a", ""},
		{0, "turn c", "pass"},
		{0, "order fifo", ""},
		{0, "call d", "wait"},
		{0, "end c", ""},
		{0, "turn b", "pass"},
	})
}

func TestChangeOfScopeReleasesThoseWhoWait(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"origin mobile", "shadow"} {
		play(t, pooled(), []step{
			{0, "call a", "pass"},
			{0, "call b", "wait"},
			{0, "call c", "wait"},
			{0, change, ""},
			{0, "wakes b", "1"},
			{0, "turn b", "stale"},
			{0, "turn c", "stale"},
			{0, "status", "1/1, 0 wait, highest 1"},
		})
	}
}

func TestRetiredRuleReleasesThoseWhoWaitAndKeepsCallsUnderWay(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{1 * ms, "end a", ""},
		{1 * ms, "retire", ""},
		{1 * ms, "turn b", "pass"}, // it had its place before
		{1 * ms, "turn c", "stale"},
		{1 * ms, "call d", "stale"},
		{1 * ms, "status", "1/1, 0 wait, highest 1"},
		{2 * ms, "limit 2", ""}, // the rule is back
		{2 * ms, "old d", "stale"},
		{2 * ms, "call d", "pass"},
		{2 * ms, "call e", "wait"},
		{3 * ms, "end b", ""},
		{3 * ms, "turn e", "pass"},
		{3 * ms, "retire", ""},
		{3 * ms, "end d", ""},
		{3 * ms, "end e", ""},
		{3 * ms, "idle", "true"},
	})
}

func TestRetiringAnOldVersionLeavesTheNewOneInForce(t *testing.T) {
	t.Parallel()
	old := newLimiter(t, pooled())
	call := rule.Call{Now: epoch, Tokens: 1}
	next := adopt(t, old, pooled(), 2)
	next.Activate(epoch)
	next.Acquire(call)
	waiter, _, _ := next.Join(call, patience(func() {}))
	old.Retire(epoch)
	_, _, decision := waiter.Poll(epoch)
	assert.Equal(t, rule.Wait, decision)
}

func TestLimiterOfAnotherKindIsNotAdopted(t *testing.T) {
	t.Parallel()
	assert.Nil(t, isolation.Kind().Of(two()).WithDefaults().Adopt(struct{ rule.Limiter }{}, rule.Env{Version: 2}))
}
