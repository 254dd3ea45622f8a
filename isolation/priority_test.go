package isolation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

func TestPlaceIsHandedToTheMostImportantWaiter(t *testing.T) {
	t.Parallel()
	r := pooled()
	r.MaxQueue = 10
	play(t, r, []step{
		{0, "call a sheddable", "pass"},
		{1 * ms, "call b low", "wait"},
		{2 * ms, "call c", "wait"},
		{3 * ms, "call d critical", "wait"},
		{4 * ms, "call e high", "wait"},
		{5 * ms, "call f critical", "wait"},
		{6 * ms, "end a", ""},
		{6 * ms, "turn d", "pass"},
		{7 * ms, "end d", ""},
		{7 * ms, "turn f", "pass"}, // the oldest first
		{8 * ms, "end f", ""},
		{8 * ms, "turn e", "pass"},
		{9 * ms, "call g critical", "wait"}, // a place that is taken stays taken
		{10 * ms, "end e", ""},
		{10 * ms, "turn g", "pass"},
		{11 * ms, "end g", ""},
		{11 * ms, "turn c", "pass"},
		{12 * ms, "end c", ""},
		{12 * ms, "turn b", "pass"},
		{13 * ms, "status", "1/1, 0 wait, highest 1"},
	})
}

func TestMostImportantIsServedFirstWithLIFOToo(t *testing.T) {
	t.Parallel()
	play(t, newestFirst(), []step{
		{0, "call a", "pass"},
		{1 * ms, "call b high", "wait"},
		{2 * ms, "call c high", "wait"},
		{3 * ms, "call d", "wait"},
		{4 * ms, "end a", ""},
		{4 * ms, "turn c", "pass"},
		{5 * ms, "end c", ""},
		{5 * ms, "turn b", "pass"},
		{6 * ms, "end b", ""},
		{6 * ms, "turn d", "pass"},
	})
}

func TestMoreImportantCallDisplacesTheLastOfTheLeastImportant(t *testing.T) {
	t.Parallel()
	play(t, pooled(), []step{
		{0, "call a", "pass"},
		{0, "call b low", "wait"},
		{1 * ms, "call c low", "wait"},
		{2 * ms, "call d", "wait"},
		{3 * ms, "call e low", "block"}, // not more important than the least important
		{3 * ms, "call e sheddable", "block"},
		{3 * ms, "call e", "wait"},
		{3 * ms, "wakes c", "1"},
		{3 * ms, "turn c", "block"},
		{4 * ms, "call f critical", "wait"},
		{4 * ms, "turn b", "block"},
		{5 * ms, "call g", "block"},
		{5 * ms, "call g high", "wait"},
		{5 * ms, "turn e", "block"}, // e came after d
		{5 * ms, "status", "1/1, 3 wait, highest 1"},
		{6 * ms, "end a", ""},
		{6 * ms, "turn f", "pass"},
		{6 * ms, "call h low", "wait"}, // there is space again
	})
}

func TestFullLIFOQueueRefusesTheOldestOfTheLeastImportant(t *testing.T) {
	t.Parallel()
	play(t, newestFirst(), []step{
		{0, "call a", "pass"},
		{0, "call b low", "wait"},
		{1 * ms, "call c low", "wait"},
		{2 * ms, "call d", "wait"},
		{3 * ms, "call e sheddable", "block"},
		{3 * ms, "call e low", "wait"},
		{3 * ms, "turn b", "block"},
		{4 * ms, "call f", "wait"},
		{4 * ms, "turn c", "block"},
		{5 * ms, "call g", "wait"},
		{5 * ms, "turn e", "block"},
		{6 * ms, "call h low", "block"},
		{6 * ms, "status", "1/1, 3 wait, highest 1"},
	})
}

// The queue may have filled between the answer that a call may wait and its wait.
func TestCallThatFindsTheQueueFullWhenItJoinsIsRefused(t *testing.T) {
	t.Parallel()
	for _, order := range []isolation.Order{isolation.FIFO, isolation.LIFO} {
		r := pooled()
		r.Order, r.MaxQueue = order, 1
		l := newLimiter(t, r)
		low, high := rule.Call{Now: epoch, Tokens: 1}, rule.Call{Now: epoch, Tokens: 1}
		low.SetCaller(rule.PriorityLow, false)
		high.SetCaller(rule.PriorityHigh, true)
		l.Acquire(low)
		_, decision := l.Acquire(low)
		require.Equal(t, rule.Wait, decision)
		_, _, decision = l.Join(high, patience(func() {}))
		require.Equal(t, rule.Wait, decision)
		_, _, decision = l.Join(low, patience(func() {}))
		assert.Equal(t, rule.Block, decision, order)
		assert.Equal(t, 1, gaugesOf(l, epoch).waiting)
	}
}

func TestEveryEighthPlaceGoesToALowerPriority(t *testing.T) {
	t.Parallel()
	for _, order := range []isolation.Order{isolation.FIFO, isolation.LIFO} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			r := isolation.Rule{Resource: "r", Limit: 1, MaxWait: time.Hour, MaxQueue: 100, Order: order}
			assert.Equal(t, "hhhhhhhlhhhhhhhlhhhhhhlll", served(t, r, strings.Repeat("l", 5)+strings.Repeat("h", 20)))
		})
	}
}

// served returns the order in which calls get a place, each a letter: h for a high
// priority, l for a low one.
func served(t *testing.T, r isolation.Rule, calls string) string {
	t.Helper()
	l := newLimiter(t, r)
	_, decision := l.Acquire(rule.Call{Now: epoch, Tokens: 1})
	require.Equal(t, rule.Pass, decision)
	var order strings.Builder
	for _, letter := range calls {
		call := rule.Call{Now: epoch, Tokens: 1}
		call.SetCaller(map[rune]rule.Priority{'h': rule.PriorityHigh, 'l': rule.PriorityLow}[letter], false)
		_, _, decision := l.Join(call, patience(func() { order.WriteRune(letter) }))
		require.Equal(t, rule.Wait, decision)
	}
	for range calls {
		l.Done(0, rule.Exit{Now: epoch})
	}
	return order.String()
}

// A place that a less important call gets as its share is not lost when its time is over.
func TestShareOfACallWhoseTimeIsOverGoesToTheNext(t *testing.T) {
	t.Parallel()
	steps := []step{{0, "call a", "pass"}, {0, "call old low", "wait"}, {500 * ms, "call new low", "wait"}}
	previous := "a"
	for c := range strings.SplitSeq("bcdefgh", "") { // seven places to a higher priority
		steps = append(steps, step{900 * ms, "call " + c + " high", "wait"}, step{900 * ms, "end " + previous, ""}, step{900 * ms, "turn " + c, "pass"})
		previous = c
	}
	r := pooled()
	r.MaxQueue = 10
	play(t, r, append(steps,
		step{1100 * ms, "call i high", "wait"},
		step{1100 * ms, "end h", ""},
		step{1100 * ms, "turn old", "block"},
		step{1100 * ms, "turn new", "pass"},
		step{1100 * ms, "end new", ""},
		step{1100 * ms, "turn i", "pass"},
	))
}

func TestReloadOfTheOrderCountsWithinAPriority(t *testing.T) {
	t.Parallel()
	r := pooled()
	r.MaxQueue = 10
	play(t, r, []step{
		{0, "call a", "pass"},
		{0, "call b", "wait"},
		{1 * ms, "call c", "wait"},
		{2 * ms, "call d high", "wait"},
		{3 * ms, "call e high", "wait"},
		{4 * ms, "order lifo", ""},
		{5 * ms, "end a", ""},
		{5 * ms, "turn e", "pass"},
		{6 * ms, "order fifo", ""},
		{7 * ms, "end e", ""},
		{7 * ms, "turn d", "pass"},
		{8 * ms, "end d", ""},
		{8 * ms, "turn b", "pass"},
	})
}

func TestLoweredMaxQueueRefusesTheLeastImportantFirst(t *testing.T) {
	t.Parallel()
	waiting := []step{
		{0, "call a", "pass"},
		{0, "call b high", "wait"},
		{1 * ms, "call c", "wait"},
		{2 * ms, "call d low", "wait"},
		{3 * ms, "call e", "wait"},
		{4 * ms, "maxQueue 2", ""},
		{4 * ms, "status", "1/1, 4 wait, highest 1"},
	}
	fifo, lifo := pooled(), newestFirst()
	fifo.MaxQueue, lifo.MaxQueue = 10, 10
	play(t, fifo, append(waiting, // those that wait go on, one leaves for one that is more important
		step{5 * ms, "call f low", "block"},
		step{5 * ms, "call f", "wait"},
		step{5 * ms, "turn d", "block"},
		step{5 * ms, "call g", "block"},
		step{5 * ms, "status", "1/1, 4 wait, highest 1"},
	))
	play(t, lifo, append(waiting,
		step{5 * ms, "call f low", "block"}, // all three that have to go are as important, or more
		step{5 * ms, "turn d", "block"},
		step{5 * ms, "turn c", "block"},
		step{5 * ms, "turn e", "wait 998ms"},
		step{5 * ms, "status", "1/1, 2 wait, highest 1"},
		step{6 * ms, "call g", "wait"},
		step{6 * ms, "turn e", "block"},
		step{6 * ms, "turn b", "wait 994ms"},
	))
}
