package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
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
