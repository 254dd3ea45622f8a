package core_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// warningsOf returns the texts of the warnings of rules so far.
func warningsOf(e *core.Engine) (texts []string) {
	found, _ := e.Events(0)
	for _, event := range found {
		if event.Type == "warning" {
			texts = append(texts, event.Rule+": "+event.Text)
		}
	}
	return texts
}

func TestRuleWarnsOnceInAWindow(t *testing.T) {
	month := rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Month}}
	for name, r := range map[string]flow.Rule{
		"sliding":  {Limit: 10, Window: time.Minute},
		"fixed":    {Limit: 10, Window: time.Minute, Algorithm: flow.FixedWindow},
		"calendar": {Limit: 10, Calendar: month},
		"shadow":   {Limit: 10, Window: time.Minute, Shadow: true},
		"demotes":  {Limit: 10, Window: time.Minute, OnExceed: rule.ExceedDemote},
	} {
		t.Run(name, func(t *testing.T) {
			r.Name, r.Resource, r.WarnAt = "r", "a", 0.8
			e, c := newEngine(t, r)
			for n := range 3 {
				enter(e, "a", 7)
				require.Len(t, warningsOf(e), n)
				enter(e, "a", 1)
				require.Len(t, warningsOf(e), n+1)
				r.Shadow = !r.Shadow // a reload of the rule does not repeat it
				load(t, e, r)
				r.Shadow = !r.Shadow
				load(t, e, r)
				enter(e, "a", 10)
				require.Len(t, warningsOf(e), n+1)
				c.Advance(31 * 24 * time.Hour)
			}
			assert.Equal(t, "r: 8 of 10 tokens of the window are used, of which the rule says to warn (warnAt 0.8)", warningsOf(e)[0])
		})
	}
}

// A call so large that it is refused says nothing of what is used.
func TestRuleWarnsByWhatIsUsed(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "r", Resource: "a", Limit: 10, Window: time.Minute, WarnAt: 1})
	assert.Zero(t, enter(e, "a", 3, core.Tokens(11)))
	assert.Empty(t, warningsOf(e))
	assert.Equal(t, 1, enter(e, "a", 1, core.Tokens(10)))
	assert.Len(t, warningsOf(e), 1)
}

func TestRuleWarnsOnceOfEachValueInAWindow(t *testing.T) {
	for name, algorithm := range map[string]hotparam.Algorithm{"sliding": hotparam.SlidingWindow, "fixed": hotparam.FixedWindow} {
		t.Run(name, func(t *testing.T) {
			e, c := newEngineOf(t, rules.Set{HotParam: []hotparam.Rule{{
				Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: 5, Window: time.Hour, Algorithm: algorithm, WarnAt: 0.8,
				Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("vip"), Value: 100}),
			}}})
			for n := range 2 {
				enter(e, "a", 3, core.String("user", "u1"))
				enter(e, "a", 79, core.String("user", "vip"))
				require.Len(t, warningsOf(e), 3*n)
				enter(e, "a", 30, core.String("user", "u1"))
				enter(e, "a", 4, core.String("user", "u2"))
				enter(e, "a", 1, core.String("user", "vip"))
				require.Len(t, warningsOf(e), 3*n+3)
				c.Advance(2 * time.Hour)
			}
			assert.Contains(t, warningsOf(e)[0], `r: 4 of 5 tokens of the window of the value "u1" are used`)
			assert.Contains(t, warningsOf(e)[2], `80 of 100`)
		})
	}
}

func TestManyValuesAreWarnedOfInBounds(t *testing.T) {
	e, c := newEngineOf(t, rules.Set{HotParam: []hotparam.Rule{{
		Name: "r", Resource: "a", Param: rule.StringsOf("user"), Limit: 1, Window: time.Hour, Algorithm: hotparam.FixedWindow, WarnAt: 1,
	}}})
	for i := range 3000 {
		enter(e, "a", 1, core.String("user", strconv.Itoa(i)))
		if i%40 == 0 {
			c.Advance(time.Second) // of each second a few events are kept
		}
	}
	found := warningsOf(e)
	assert.Less(t, len(found), 1100)
	assert.True(t, strings.HasPrefix(found[len(found)-1], "r: more than 1024 values"), found[len(found)-1])
}

func TestGoroutinesWarnOnce(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "r", Resource: "a", Limit: 500, Window: time.Hour, WarnAt: 0.5})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() { enter(e, "a", 50) })
	}
	group.Wait()
	assert.Len(t, warningsOf(e), 1)
}

func TestRulesThatWarnDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := newEngineOf(t, rules.Set{
		Flow: []flow.Rule{{Resource: "a", Limit: 1e6, Window: time.Hour, WarnAt: 1e-6}},
		HotParam: []hotparam.Rule{{
			Resource: "a", Param: rule.StringsOf("user"), Limit: 1e6, Window: time.Hour, Algorithm: hotparam.FixedWindow, WarnAt: 1e-6,
		}},
	})
	user, ctx := core.String("user", "u1"), context.Background()
	assert.Zero(t, testing.AllocsPerRun(200, func() {
		g, _ := e.Entry(ctx, "a", user)
		g.Exit()
	}))
}
