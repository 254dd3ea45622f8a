package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// An engine on a virtual clock, as a test of one's own rules would use it.
func ExampleEngine() {
	now := clock.NewVirtual(time.Unix(0, 0))
	engine := core.New(core.Config{Clock: now, Logger: quiet})
	defer engine.Close()
	_ = engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 100}}})

	for range 2 {
		passed := 0
		for range 150 {
			if guard, err := engine.Entry(context.Background(), "r"); err == nil {
				guard.Exit()
				passed++
			}
		}
		fmt.Println(passed, "of 150 passed")
		now.Advance(time.Second)
	}
	// Output:
	// 100 of 150 passed
	// 100 of 150 passed
}

// Each user has a limit of its own. The user is an attribute of the call, not a part of
// the name of the resource.
func ExampleString() {
	now := clock.NewVirtual(time.Unix(0, 0))
	engine := core.New(core.Config{Clock: now, Logger: quiet})
	defer engine.Close()
	_ = engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-user", Resource: "orders:create", Param: rule.StringsOf("user"), Limit: 2},
	}})

	for _, user := range []string{"ann", "ann", "ann", "bob"} {
		guard, err := engine.Entry(context.Background(), "orders:create", core.String("user", user))
		if err != nil {
			fmt.Println(user, err)
			continue
		}
		fmt.Println(user, "passed")
		guard.Exit()
	}
	// Output:
	// ann passed
	// ann passed
	// ann penstock: "orders:create" blocked by hotParam "per-user", retry after 500ms
	// bob passed
}

// Who is on the list may not call. The list is replaced while the engine runs.
func ExampleEngine_Lists() {
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	_ = engine.Load(rules.Set{Access: []access.Rule{{Name: "no-scrapers", Resource: "search", List: "scrapers"}}})

	for _, text := range []string{"192.0.2.0/24", "198.51.100.0/24"} {
		scrapers, err := list.Parse(context.Background(), strings.NewReader(text), list.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		engine.Lists().Set("scrapers", scrapers)
		guard, err := engine.Entry(context.Background(), "search", core.String("ip", "192.0.2.7"))
		fmt.Println(text, "refused:", errors.Is(err, core.ErrBlocked))
		guard.Exit()
	}
	// Output:
	// 192.0.2.0/24 refused: true
	// 198.51.100.0/24 refused: false
}

func ExampleCall() {
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	answer, err := core.Call(context.Background(), engine, "question", func(context.Context) (int, error) {
		return 42, nil
	})
	fmt.Println(answer, err)
	// Output: 42 <nil>
}

func ExampleResource_Minute() {
	now := clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	engine := core.New(core.Config{Clock: now, Logger: quiet})
	defer engine.Close()
	guard, _ := engine.Entry(context.Background(), "r")
	now.Advance(30 * time.Millisecond)
	guard.Exit()

	minute := engine.Resource("r").Minute()
	present := minute[len(minute)-1]
	fmt.Println(present.Start.Time().Format(time.TimeOnly), present.Passed, present.MeanResponseTime())
	// Output: 03:04:05 1 30ms
}
