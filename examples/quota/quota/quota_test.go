package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rule/kindtest"
	"github.com/penstock-go/penstock/rules"

	"github.com/penstock-go/penstock/examples/quota/quota"
)

// A kind of rule of your own, of which each value of an attribute has a limit. Engines know it by
// core.Config.Kinds; a rule comes from a document or, as here, from code.
func Example() {
	kind := quota.Kind()
	now := clock.NewVirtual(time.Date(2030, 6, 1, 22, 30, 0, 0, time.UTC))
	engine := core.New(core.Config{Clock: now, Kinds: []rule.Definition{kind}, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Custom: []rule.Rule{kind.Of(quota.Rule{Resource: "report", PerDay: 2})}}); err != nil {
		fmt.Println(err)
	}
	call := func(user string) {
		guard, err := engine.Entry(context.Background(), "report", core.String("user", user))
		fmt.Println(user, err)
		guard.Exit()
	}
	call("ann")
	call("ann")
	call("ann")
	call("bob")
	now.Advance(90 * time.Minute)
	call("ann")
	// Output:
	// ann <nil>
	// ann <nil>
	// ann penstock: "report" blocked by quota "report", retry after 1h30m0s
	// bob <nil>
	// ann <nil>
}

func TestKindKeepsThePromisesOfKinds(t *testing.T) {
	of := quota.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: quota.Kind(), Rules: []kindtest.Rule{
		{
			Rule: of(quota.Rule{Name: "a-day", Resource: "report", PerDay: 10}), Passes: 10, Again: 24 * time.Hour,
			Stricter: of(quota.Rule{Name: "a-day", Resource: "report", PerDay: 4}),
		},
		{
			Rule:     of(quota.Rule{Name: "shared", Match: "report:*", Shared: true, Param: "tenant", PerDay: 1}),
			Resource: "report:sales", Passes: 1, Again: 24 * time.Hour,
		},
		{Rule: of(quota.Rule{Name: "none", Resource: "report"}), Again: rule.Never},
	}})
}

// Values that find no place share one quota, and go on doing so when others give back.
func TestValuesBeyondTheBoundShareOneQuota(t *testing.T) {
	l := quota.Kind().Of(quota.Rule{Resource: "report", PerDay: 1}).WithDefaults().NewLimiter(rule.Env{Version: 1})
	now := clock.Instant(24 * time.Hour)
	var tickets []rule.Ticket
	refused := 0
	for user := range int64(40_000) {
		ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1, Attribute: rule.Int(user)})
		if decision == rule.Pass {
			tickets = append(tickets, ticket)
		} else {
			refused++
		}
	}
	assert.LessOrEqual(t, len(tickets), 16_384+1)
	assert.Greater(t, len(tickets), 16_000)
	for user := range int64(40_000) {
		_, decision := l.Acquire(rule.Call{Now: now, Tokens: 1, Attribute: rule.Int(user)})
		assert.Equal(t, rule.Block, decision, "each has had its own, or shares what is used up")
	}
	assert.Equal(t, 40_000-len(tickets), refused)
	_, decision := l.Acquire(rule.Call{Now: now.Add(24 * time.Hour), Tokens: 1, Attribute: rule.Int(1)})
	assert.Equal(t, rule.Pass, decision, "the next day")
}
