package core_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// heap returns the bytes that are reachable now. What earlier tests have left in pools
// and behind finalizers takes more than one collection to go.
func heap() uint64 {
	least := uint64(math.MaxUint64)
	for range 4 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		least = min(least, s.HeapAlloc)
	}
	return least
}

// matching returns so many rules for the resources that a pattern means, which
// refuse from the second call on.
func matching(n int, pattern string) (rules []flow.Rule) {
	for i := range n {
		rules = append(rules, flow.Rule{Name: fmt.Sprint(pattern, i), Match: pattern, Limit: 1 + float64(i)})
	}
	return rules
}

// Names that clients choose, whatever they are, cost an engine no more memory
// than its bounds say, with and without patterns.
func TestNamesThatClientsChooseAreBounded(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("makes very many calls")
	}
	const names = 1000 // have a slot
	long := strings.Repeat("x", 100_000)
	user := func(i int) string { return fmt.Sprint("user:", i) }
	for _, test := range []struct {
		name  string
		calls int
		rules []flow.Rule
		named func(i int) string
		most  uint64 // KiB
	}{
		{"no pattern", longtest.Of(30_000, 1_000_000), nil, user, names * 7},
		{"a pattern", longtest.Of(10_000, 200_000), matching(1, "user:*"), user, names * 8},
		{"fifty patterns, one matches", longtest.Of(5_000, 40_000), append(matching(49, "*:x*y"), matching(1, "*")...), user, names * 8},
		{"fifty patterns that match", longtest.Of(1_500, 20_000), matching(50, "*"), user, 200 << 10},
		{"no text", longtest.Of(10_000, 100_000), matching(2, "~^.*$"), func(i int) string { return fmt.Sprintf("\xff\xfe%d\x00", i) }, names * 10},
		{"long names", longtest.Of(1500, 3000), nil, func(i int) string { return fmt.Sprint(i, long) }, 20 << 10},
		{"long names and a pattern", 1200, matching(1, "*"), func(i int) string { return fmt.Sprint(i, long) }, 20 << 10},
		{"parts of long texts", 3000, nil, func(i int) string { return fmt.Sprint(100_000+i, long)[:6] }, 20 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := heap()
			e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: names})
			defer e.Close()
			load(t, e, test.rules...)
			start := time.Now()
			for i := range test.calls {
				name := test.named(i)
				guard, err := e.Entry(context.Background(), name)
				if err == nil {
					guard.Exit()
				}
				if i%1000 == 0 {
					e.Explain(name)
					e.Quotas(name)
				}
			}
			each := time.Since(start) / time.Duration(test.calls)
			after := heap()
			t.Logf("%v a call, %d KiB", each, (int64(after)-int64(before))>>10)
			assert.LessOrEqual(t, after, before+test.most<<10)
			assert.LessOrEqual(t, len(e.Snapshot().Resources), names+1)
			runtime.KeepAlive(e)
		})
	}
}

// A client may choose the name under which the statistics of the many are kept.
func TestTheNameOfTheOverflowIsOneLikeAnyOther(t *testing.T) {
	t.Run("patterns", func(t *testing.T) {
		e, _ := newEngine(t, flow.Rule{Match: "user:*", Limit: 0})
		assert.Empty(t, e.Explain(rule.OtherResources))
		assert.Equal(t, 1, enter(e, rule.OtherResources, 1), "the pattern does not match it")
	})
	t.Run("a rule that names it", func(t *testing.T) {
		e, _ := newEngine(t)
		require.ErrorContains(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: rule.OtherResources}}}), "choose another name")
	})
}
