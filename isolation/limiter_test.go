package isolation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

const (
	second = time.Second
	ms     = time.Millisecond
)

// two is a rule with two places and no queue.
func two() isolation.Rule { return isolation.Rule{Resource: "r", Limit: 2} }

// pooled is a rule with one place, for which calls wait up to a second.
func pooled() isolation.Rule {
	return isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Second, MaxQueue: 3}
}

func newestFirst() isolation.Rule {
	r := pooled()
	r.Order = isolation.LIFO
	return r
}

func TestCallsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	play(t, two(), []step{
		{0, "call a", "pass"},
		{0, "call b", "pass"},
		{0, "call c", "block"},
		{0, "retry", "0s"},
		{1 * second, "end a", ""},
		{1 * second, "call c", "pass"},
		{1 * second, "call d", "block"},
		{1 * second, "give back c", ""},
		{1 * second, "call d", "pass"},
		{1 * second, "status", "2/2, 0 wait, highest 2"},
		{2 * second, "end b", ""},
		{2 * second, "idle", "false"},
		{2 * second, "end d", ""},
		{2 * second, "idle", "true"},
		{2 * second, "status", "0/2, 0 wait, highest 2"},
	})
}

func TestLimitOfZeroBlocksAll(t *testing.T) {
	t.Parallel()
	r := pooled()
	r.Limit = 0
	play(t, r, []step{
		{0, "call a", "block"},
		{0, "retry", rule.Never.String()},
		{0, "idle", "true"},
		{0, "limit 1", ""},
		{0, "call a", "pass"},
	})
}

func TestPlaceIsHandedToTheOldestWaiter(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{100 * ms, "call b", "wait"},
		{200 * ms, "call c", "wait"},
		{200 * ms, "idle", "false"},
		{300 * ms, "turn b", "wait 800ms"},
		{300 * ms, "turn c", "wait 900ms"},
		{400 * ms, "status", "1/1, 2 wait, highest 1"},
		{500 * ms, "end a", ""},
		{500 * ms, "wakes b", "1"},
		{500 * ms, "wakes c", "0"},
		{500 * ms, "status", "1/1, 1 wait, highest 1"},
		{500 * ms, "call d", "wait"}, // b has its place already
		{600 * ms, "turn b", "pass"},
		{600 * ms, "turn c", "wait 600ms"},
		{700 * ms, "end b", ""},
		{700 * ms, "turn c", "pass"},
		{700 * ms, "end c", ""},
		{700 * ms, "turn d", "pass"},
		{700 * ms, "end d", ""},
		{700 * ms, "call e", "pass"},
	})
}

func TestPlaceIsHandedToTheNewestWaiterWithLIFO(t *testing.T) {
	t.Parallel()
	play(t, newestFirst(), []step{
		{0, "call a", "pass"},
		{1 * ms, "call b", "wait"},
		{2 * ms, "call c", "wait"},
		{3 * ms, "call d", "wait"},
		{4 * ms, "end a", ""},
		{4 * ms, "turn d", "pass"},
		{5 * ms, "call e", "wait"},
		{6 * ms, "end d", ""},
		{6 * ms, "turn e", "pass"},
		{7 * ms, "leave c", ""},
		{7 * ms, "end e", ""},
		{7 * ms, "turn b", "pass"},
	})
}

func TestNewcomerIsRefusedWhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{0, "call d", "wait"},
		{0, "call e", "block"},
		{0, "leave c", ""},
		{0, "call e", "wait"},
		{0, "call f", "block"},
		{0, "end a", ""},
		{0, "turn b", "pass"},
		{0, "call f", "wait"},
	})
}

func TestOldestWaiterIsRefusedWhenALIFOQueueIsFull(t *testing.T) {
	t.Parallel()
	play(t, newestFirst(), []step{
		{0, "call a", "pass"},
		{1 * ms, "call b", "wait"},
		{2 * ms, "call c", "wait"},
		{3 * ms, "call d", "wait"},
		{4 * ms, "call e", "wait"},
		{4 * ms, "wakes b", "1"},
		{4 * ms, "turn b", "block"},
		{4 * ms, "status", "1/1, 3 wait, highest 1"},
		{5 * ms, "end a", ""},
		{5 * ms, "turn e", "pass"},
	})
}

func TestWaitEndsAtMaxWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{999 * ms, "turn b", "wait 1ms"},
		{1 * second, "turn b", "block"},
		{1 * second, "status", "1/1, 0 wait, highest 1"},
		{1 * second, "end a", ""},
		{1 * second, "call c", "pass"},
	})
}

func TestPlaceFreedAtExactlyMaxWaitPasses(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{1 * second, "end a", ""},
		{1 * second, "turn b", "pass"},
	})
}

func TestPlaceIsNotHandedToAWaiterWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{500 * ms, "call c", "wait"},
		{1*second + 1, "end a", ""}, // b has not asked yet
		{1*second + 1, "turn b", "block"},
		{1*second + 1, "turn c", "pass"},
	})
}

func TestMaxWaitCountsFromTheBeginningOfTheWholeWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{1 * second, "call b since 400ms", "wait"},
		{1 * second, "turn b", "wait 400ms"},
		{1400 * ms, "call c since 400ms", "block"}, // nothing is left of its time
		{1400 * ms, "turn b", "block"},
		{1400 * ms, "end a", ""},
		{1400 * ms, "call d since 0s", "pass"}, // it need not wait
	})
}

func TestCallWhoseContextIsOverDoesNotWait(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{1 * second, "call b until 999ms", "block"},
		{1 * second, "call c until 1s", "block"},
		{1 * second, "call d until 1001ms", "wait"},
	})
}

func TestWaiterThatLeavesGivesBackAPlaceItHasNotUsed(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{0, "call c", "wait"},
		{1 * ms, "end a", ""},
		{1 * ms, "leave b", ""},
		{1 * ms, "turn c", "pass"},
		{1 * ms, "leave c", ""}, // it has its place: nothing is left to give back
		{1 * ms, "status", "1/1, 0 wait, highest 1"},
		{2 * ms, "end c", ""},
		{2 * ms, "status", "0/1, 0 wait, highest 1"},
	})
}

func TestWaitersLeaveFromAnywhereInTheQueue(t *testing.T) {
	t.Parallel()
	for _, leaving := range []string{"b", "c", "d", "bc", "cd", "bd", "dcb", "bcd"} {
		t.Run(leaving, func(t *testing.T) {
			t.Parallel()
			steps := []step{{0, "call a", "pass"}, {0, "call b", "wait"}, {0, "call c", "wait"}, {0, "call d", "wait"}}
			staying := map[rune]bool{'b': true, 'c': true, 'd': true}
			for _, c := range leaving {
				staying[c] = false
				steps = append(steps, step{0, "leave " + string(c), ""})
			}
			previous := 'a'
			for _, c := range "bcd" {
				if staying[c] {
					steps = append(steps, step{0, "end " + string(previous), ""}, step{0, "turn " + string(c), "pass"})
					previous = c
				}
			}
			play(t, pooled(), append(steps, step{0, "status", "1/1, 0 wait, highest 1"}))
		})
	}
}

func TestHighestIsThatOfThisMinuteAndTheOneBefore(t *testing.T) {
	t.Parallel()
	play(t, isolation.Rule{Resource: "r", Limit: 9}, []step{
		{0, "call a", "pass"},
		{0, "call b", "pass"},
		{0, "call c", "pass"},
		{0, "end a", ""},
		{59 * second, "end b", ""},
		{59 * second, "status", "1/9, 0 wait, highest 3"},
		{60 * second, "call d", "pass"},
		{119 * second, "status", "2/9, 0 wait, highest 3"},
		{120 * second, "status", "2/9, 0 wait, highest 2"},
		{130 * second, "end c", ""}, // two were under way when the minute began
		{200 * second, "status", "1/9, 0 wait, highest 2"},
		{240 * second, "status", "1/9, 0 wait, highest 1"},
		{250 * second, "end d", ""},
		{251 * second, "status", "0/9, 0 wait, highest 1"},
		{299 * second, "call e", "pass"},
		{299 * second, "call f", "pass"},
		{601 * second, "status", "2/9, 0 wait, highest 2"}, // all the time
	})
	for _, release := range []string{"end ", "give back "} { // nobody looks in between
		play(t, isolation.Rule{Resource: "r", Limit: 9}, []step{
			{0, "call a", "pass"},
			{0, "call b", "pass"},
			{1 * second, release + "a", ""},
			{61 * second, release + "b", ""},
			{62 * second, "call c", "pass"},
			{62 * second, release + "c", ""},
			{130 * second, "call d", "pass"},
			{130 * second, release + "d", ""},
			{179 * second, "status", "0/9, 0 wait, highest 1"},
			{239 * second, "status", "0/9, 0 wait, highest 1"},
			{240 * second, "status", "0/9, 0 wait, highest 0"},
		})
	}
}

func TestPassingAndRefusingAllocateNothing(t *testing.T) {
	for name, r := range map[string]isolation.Rule{"pass": wide(), "refuse": none()} {
		l := newLimiter(t, r)
		call := rule.Call{Now: epoch, Tokens: 1}
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			ticket, decision := l.Acquire(call)
			if decision == rule.Pass {
				l.Done(ticket, rule.Exit{Now: epoch})
			}
			l.RetryAfter(call)
		}), name)
	}
}

func TestHandingAPlaceOverAllocatesNothing(t *testing.T) {
	r := pooled()
	r.MaxQueue = isolation.MaxMaxQueue
	l := newLimiter(t, r)
	call := rule.Call{Now: epoch, Tokens: 1}
	l.Acquire(call)
	const runs = 1000
	for range runs + 1 { // AllocsPerRun warms up with one more
		l.Join(call, patience(func() {}))
	}
	assert.Zero(t, testing.AllocsPerRun(runs, func() { l.Done(0, rule.Exit{Now: epoch}) }))
	assert.Equal(t, 0, gaugesOf(l, epoch).waiting)
}

// A program error of the engine must not lift the limit.
func TestReleasingTwiceDoesNotRaiseTheLimit(t *testing.T) {
	t.Parallel()
	play(t, two(), []step{
		{0, "call a", "pass"},
		{0, "end a", ""},
		{0, "end a", ""},
		{0, "call b", "pass"},
		{0, "call c", "pass"},
		{0, "call d", "block"},
	})
}
