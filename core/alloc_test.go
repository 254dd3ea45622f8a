package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestNoCallAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	many := func(resource string, rule flow.Rule) (rules []flow.Rule) {
		for i := range 10 {
			rule.Name, rule.Resource = fmt.Sprint(resource, i), resource
			rules = append(rules, rule)
		}
		return rules
	}
	warm := flow.WarmUp{Period: time.Second}
	all := []flow.Rule{
		{Resource: "reject", Limit: 1e9},
		{Resource: "warm", Limit: 1e9, WarmUp: warm},
		{Resource: "throttle", Limit: 1e9, Algorithm: flow.Throttle},
		{Resource: "closed", Limit: 0},
		{Resource: "closed queue", Limit: 0, Algorithm: flow.Throttle},
	}
	all = append(all, flow.Rule{Match: "pattern*", Limit: 1e9},
		flow.Rule{Name: "closed pattern", Match: "closed pattern", Limit: 0},
		flow.Rule{Name: "origin", Resource: "origins", Limit: 1e9, Origin: "origins"},
		flow.Rule{Name: "others", Resource: "origins", Limit: 1e9, Origin: rule.OtherOrigins},
		flow.Rule{Resource: "related", Limit: 1e9, Related: "reject"},
		flow.Rule{Resource: "shadow", Limit: 0, Shadow: true},
		flow.Rule{Resource: "bucket", Limit: 1e9, Algorithm: flow.TokenBucket},
		flow.Rule{Resource: "fixed", Limit: 1e9, Algorithm: flow.FixedWindow},
	)
	all = append(all, many("ten windows", flow.Rule{Limit: 1e9})...)
	all = append(all, many("two queues", flow.Rule{Limit: 1e9, Algorithm: flow.Throttle})[:2]...)
	all = append(all, many("closed windows", flow.Rule{Limit: 0})...)
	all = append(all, many("closed behind queues", flow.Rule{Limit: 1e9, Algorithm: flow.Throttle, MaxWait: time.Second})[:2]...)
	all = append(all, many("closed queues", flow.Rule{Limit: 0, Algorithm: flow.Throttle})[:3]...)
	all = append(all, flow.Rule{Name: "closed behind", Resource: "closed behind queues"},
		flow.Rule{Name: "before closed", Resource: "closed behind a queue", Limit: 1e9, Algorithm: flow.Throttle},
		flow.Rule{Name: "closed behind one", Resource: "closed behind a queue"},
		flow.Rule{Name: "shared", Match: "shared*", Shared: true, Limit: 1e9},
		flow.Rule{Name: "shared too", Match: "shared ?", Shared: true, Limit: 1e9},
	)
	e, c := newEngine(t, all...)

	options := map[string]func(resource string) (core.Guard, error){
		"plain": func(r string) (core.Guard, error) { return e.Entry(context.Background(), r) },
		"options": func(r string) (core.Guard, error) {
			return e.Entry(context.Background(), r,
				core.Tokens(2), core.Origin(r), core.String("user", r), core.Int("size", int64(len(r)*1000)),
				core.Priority(rule.PriorityHigh), core.Inbound())
		},
	}
	for _, r := range []string{
		"no rule", "reject", "warm", "throttle", "closed", "closed queue", "ten windows", "two queues",
		"pattern a", "closed queues", "closed pattern", "origins", "related", "shadow", "bucket", "fixed",
		"closed windows", "closed behind queues", "closed behind a queue", "shared 1",
	} {
		handle := e.Resource(r)
		options["resource"] = func(string) (core.Guard, error) { return handle.Entry(context.Background()) }
		for name, entry := range options {
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				c.Advance(1000) // long enough for the spacing of a throttle
				guard, _ := entry(r)
				guard.Exit()
			}), "%s, %s", r, name)
		}
	}
}

func TestNoCallOfManyRulesAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	passes := map[string]func(set *rules.Set, name, resource string){
		"isolation": func(set *rules.Set, name, resource string) {
			set.Isolation = append(set.Isolation, isolation.Rule{Name: name, Resource: resource, Limit: 1000})
		},
		"breaker": func(set *rules.Set, name, resource string) {
			set.Breaker = append(set.Breaker, breaker.Rule{Name: name, Resource: resource, Threshold: 0.5})
		},
		"hotParam": func(set *rules.Set, name, resource string) {
			set.HotParam = append(set.HotParam, hotparam.Rule{Name: name, Resource: resource, Param: rule.StringsOf("user"), Limit: 1e9})
		},
	}
	for name, r := range map[string]flow.Rule{
		"window":   {Limit: 1e9},
		"throttle": {Limit: 1e9, Algorithm: flow.Throttle, MaxWait: time.Second},
		"bucket":   {Limit: 1e9, Algorithm: flow.TokenBucket},
	} {
		passes[name] = func(set *rules.Set, name, resource string) {
			r.Name, r.Resource = name, resource
			set.Flow = append(set.Flow, r)
		}
	}
	for kind, add := range passes {
		for _, count := range []int{1, 8, 9, 50} {
			e, c := newEngine(t)
			set := rules.Set{}
			for i := range count {
				add(&set, fmt.Sprint("passes", i), "passes")
				add(&set, fmt.Sprint("refuses", i), "refuses")
			}
			set.Flow = append(set.Flow, flow.Rule{Name: "closed", Resource: "refuses"})
			require.NoError(t, e.Load(set))
			for _, resource := range []string{"passes", "refuses"} {
				assert.Zero(t, testing.AllocsPerRun(100, func() {
					c.Advance(1000) // long enough for the spacing of a throttle
					guard, err := e.Entry(context.Background(), resource, core.String("user", "u"))
					if (err == nil) != (resource == "passes") {
						t.Error(err)
					}
					guard.Exit()
				}), "%s, %d rules of kind %s", resource, count, kind)
			}
		}
	}
}

// A reload of all rules makes of each the completed rule, what is compiled of it, a limiter with
// what it warns by, and a plan.
func TestReloadMakesFiveObjectsForAChangedRule(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const count = 1000
	var sets [2]rules.Set
	for i := range sets {
		for j := range count {
			sets[i].Flow = append(sets[i].Flow, flow.Rule{Resource: fmt.Sprint("r", j), Limit: float64(1 + i)})
		}
	}
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	loads := 0
	allocated := testing.AllocsPerRun(10, func() {
		_ = e.Load(sets[loads%2])
		loads++
	})
	assert.InDelta(t, 5, allocated/count, 0.3)
}
