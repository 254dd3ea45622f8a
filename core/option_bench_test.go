package core_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// header reads the header fields of requests.
func header(r *http.Request, key string) rule.Attribute { return rule.String(r.Header[key][0]) }

// BenchmarkOptions is calls with and without options, on a clock that costs nothing.
func BenchmarkOptions(b *testing.B) {
	users := []string{"alice", "bob", "carol", "dave"}
	perUser := func(limit float64) rules.Set {
		return rules.Set{HotParam: []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: limit, Window: time.Hour}}}
	}
	adaptiveRule := rules.Set{Adaptive: []adaptive.Rule{{Resource: "r", Strategy: adaptive.Latency, InitialLimit: 1, MaxLimit: 1}}}
	wide := rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: flow.MaxLimit}}}
	request := &http.Request{Header: http.Header{"user": {"alice"}}}
	ctx := context.Background()
	tests := []struct {
		name  string
		rules rules.Set
		under int // calls under way
		enter func(e *core.Engine, i int) (core.Guard, error)
	}{
		{"flow passes, none", wide, 0, func(e *core.Engine, _ int) (core.Guard, error) { return e.Entry(ctx, "r") }},
		{"flow passes, three", wide, 0, func(e *core.Engine, i int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.Inbound(), core.Origin(users[i&3]), core.Tokens(1))
		}},
		{"hotParam passes", perUser(1e9), 0, func(e *core.Engine, i int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.String("user", users[i&3]))
		}},
		{"hotParam refuses", perUser(1), 0, func(e *core.Engine, i int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.String("user", users[i&3]))
		}},
		{"hotParam refuses, four", perUser(1), 0, func(e *core.Engine, i int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.Inbound(), core.Origin("web"), core.Int("size", 7), core.String("user", users[i&3]))
		}},
		{"hotParam passes, source", perUser(1e9), 0, func(e *core.Engine, _ int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.Inbound(), core.Attributes(header, request), core.Origin("web"))
		}},
		{"hotParam refuses, source", perUser(1), 0, func(e *core.Engine, _ int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.Inbound(), core.Attributes(header, request), core.Origin("web"))
		}},
		{"adaptive refuses", adaptiveRule, 100, func(e *core.Engine, i int) (core.Guard, error) {
			return e.Entry(ctx, "r", core.NoWait(), core.Priority(rule.PriorityLow), core.Origin(users[i&3]))
		}},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			e := core.New(core.Config{Clock: &free{clock.System(), clock.System().Now()}, Logger: quiet})
			defer e.Close()
			if err := e.Load(test.rules); err != nil {
				b.Fatal(err)
			}
			for i := range test.under {
				arrival := e.Arrive(ctx, "r", func() {}, core.Origin(users[i&3]))
				arrival.Proceed()
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if guard, err := test.enter(e, i); err == nil {
					guard.Exit()
				}
				i++
			}
		})
	}
}
