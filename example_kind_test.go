package penstock_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rule/kindtest"
	"github.com/penstock-go/penstock/rules"
)

// denyRule is a kind of rule: it refuses the calls of one user.
type denyRule struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool

	User string
}

// denyKind describes the kind. Documents have its rules in a list "deny".
func denyKind() *rule.Type[denyRule] {
	common := func(r *denyRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	return rule.Define(rule.Spec[denyRule]{
		Kind: "deny", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common,
		Fields: []rule.Field[denyRule]{
			rule.FieldOf("user", func(r *denyRule) *string { return &r.User }).
				Required("is missing: write who may not call").Says("who may not call"),
		},
		Examples: []rule.Example[denyRule]{{
			About: "no orders of eve", Rule: denyRule{Resource: "orders", User: "eve"}, Fields: []string{"resource", "user"},
		}},
		Validate: func(r *denyRule) (faults []rule.Fault) {
			if r.User == "" { // Required is for documents; this is for rules from code
				faults = append(faults, rule.Fault{Field: "user", Message: "is missing: set who may not call"})
			}
			return faults
		},
		Attributes: func(*denyRule) []string { return []string{"user"} },
		New:        func(r *denyRule, _ rule.Env) rule.Limiter { return denyLimiter{r} },
	})
}

// denyLimiter enforces one rule on one resource. It keeps no state.
type denyLimiter struct{ rule *denyRule }

func (l denyLimiter) Acquire(call rule.Call) (rule.Ticket, rule.Decision) {
	if user, _ := call.Attribute.Text(); user == l.rule.User {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (l denyLimiter) RetryAfter(call rule.Call) time.Duration {
	if _, decision := l.Acquire(call); decision == rule.Block {
		return rule.Never
	}
	return 0
}

// GiveBack has nothing to undo, Status nothing to tell, and a limiter without a state is always as a new one.

func (denyLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (denyLimiter) Status(clock.Instant) rule.Status           { return rule.Status{} }
func (denyLimiter) Idle(clock.Instant) bool                    { return true }

func TestExampleOfAKindKeepsThePromisesOfKinds(t *testing.T) {
	kind := denyKind()
	kindtest.Run(t, kindtest.Options{Kind: kind, Rules: []kindtest.Rule{
		{Rule: kind.Of(denyRule{Name: "others", Resource: "r", User: "eve"}), Passes: kindtest.All},
		{
			Rule: kind.Of(denyRule{Name: "eve", Resource: "r", User: "eve"}), Again: rule.Never,
			Value: func(int) string { return "eve" },
		},
	}})
}

// A kind of rule of your own: the rule, what it says of itself, and a limiter. A
// document and a set in code use it; engines know it by core.Config.Kinds.
func Example_kindOfYourOwn() {
	kind := denyKind()
	engine := core.New(core.Config{Kinds: []rule.Definition{kind}, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Custom: []rule.Rule{
		kind.Of(denyRule{Name: "no-eve", Match: "orders:*", User: "eve"}),
	}}); err != nil {
		fmt.Println(err)
	}
	for _, user := range []string{"ann", "eve"} {
		guard, err := engine.Entry(context.Background(), "orders:create", core.String("user", user))
		fmt.Println(user, err)
		guard.Exit()
	}
	_, err := rules.NewTable(kind).Parse("deny.yaml", []byte("deny: [{resource: orders, usr: eve}]"))
	fmt.Println(err)
	// Output:
	// ann <nil>
	// eve penstock: "orders:create" blocked by deny "no-eve"
	// rules: deny.yaml:1:27: deny rule "orders": unknown field "usr": did you mean "user"?
}
