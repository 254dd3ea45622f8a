package hotparam_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// BenchmarkAcquire is what a rule adds to a call, without the engine.
func BenchmarkAcquire(b *testing.B) {
	for _, c := range []struct {
		name   string
		rule   hotparam.Rule
		values int
	}{
		{"passed, 1 value", hotparam.Rule{Limit: 1e8, Window: time.Hour}, 1},
		{"passed, 10000 values", hotparam.Rule{Limit: 1e8, Window: time.Hour}, 10_000},
		{"refused, 10000 values", hotparam.Rule{Limit: 1, Window: 24 * time.Hour}, 10_000},
		{"with a value of its own", hotparam.Rule{Limit: 1e8, Window: time.Hour, Values: rule.NumberMapOf(text("user-7", 5))}, 10_000},
		{"with a penalty", hotparam.Rule{Limit: 1e8, Window: time.Hour, Penalty: hotparam.Penalty{After: 5, Within: time.Second, For: time.Second}}, 10_000},
		{"sliding window, 10000 values", hotparam.Rule{Limit: 1e9, Window: time.Hour, Algorithm: hotparam.SlidingWindow}, 10_000},
		{"throttle, 10000 values", hotparam.Rule{Limit: 1e9, Algorithm: hotparam.Throttle}, 10_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.rule.Resource, c.rule.Param = "r", rule.StringsOf("user")
			l := hotparam.Kind().Of(c.rule).WithDefaults().NewLimiter(rule.Env{Version: 1, Now: epoch})
			calls := make([]rule.Call, c.values)
			for i := range calls {
				calls[i] = rule.Call{Now: epoch, Tokens: 1, Attribute: user("user-" + strconv.Itoa(i))}
				l.Acquire(calls[i])
			}
			b.ReportAllocs()
			i, now := 0, epoch
			for b.Loop() {
				now++
				calls[i].Now = now
				l.Acquire(calls[i])
				if i++; i == len(calls) {
					i = 0
				}
			}
		})
	}
}
