package core_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// refusingSets returns for each kind a set with one rule "r" that refuses what user "x" calls.
func refusingSets() map[rule.Kind]func(pattern string) rules.Set {
	return map[rule.Kind]func(string) rules.Set{
		rules.KindFlow: func(p string) rules.Set { return rules.Set{Flow: []flow.Rule{{Name: "r", Match: p}}} },
		rules.KindIsolation: func(p string) rules.Set {
			return rules.Set{Isolation: []isolation.Rule{{Name: "r", Match: p}}}
		},
		rules.KindBreaker: func(p string) rules.Set {
			return rules.Set{Breaker: []breaker.Rule{{Name: "r", Match: p, Threshold: 0.5}}}
		},
		rules.KindHotParam: func(p string) rules.Set {
			return rules.Set{HotParam: []hotparam.Rule{{Name: "r", Match: p, Param: rule.StringsOf("user")}}}
		},
		rules.KindAccess: func(p string) rules.Set {
			return rules.Set{Access: []access.Rule{{Name: "r", Match: p, Attribute: "user", Deny: rule.StringsOf("x")}}}
		},
		rules.KindFault: func(p string) rules.Set {
			return rules.Set{Fault: []fault.Rule{{Name: "r", Match: p, Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: begin.Add(time.Hour)}}}
		},
		rules.KindAdaptive: func(p string) rules.Set {
			return rules.Set{Adaptive: []adaptive.Rule{{Name: "r", Match: p, MinLimit: 1, MaxLimit: 1, InitialLimit: 1}}}
		},
	}
}

func wouldRefuse(t *testing.T, e *core.Engine, resource string) (n uint64, off bool) {
	t.Helper()
	all := e.Explain(resource)
	require.Len(t, all, 1)
	return all[0].WouldBlock, all[0].Off
}

// Rules of every kind, also on names that come later and on those beyond MaxResources, let pass what they
// refuse as soon as any scope that has them is off, count it, and refuse again once that is released.
func TestSwitchedOffRulesOfEveryKindLetCallsPassAndCount(t *testing.T) {
	for kind, set := range refusingSets() {
		for name, scopeOn := range map[string]func(resource string) core.Scope{
			"rule":     func(string) core.Scope { return core.Scope{Kind: kind, Rule: "r"} },
			"kind":     func(string) core.Scope { return core.Scope{Kind: kind} },
			"resource": func(resource string) core.Scope { return core.Scope{Resource: resource} },
			"engine":   func(string) core.Scope { return core.Scope{} },
		} {
			t.Run(fmt.Sprint(kind, " by ", name), func(t *testing.T) {
				e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: 1})
				defer e.Close()
				require.NoError(t, e.Load(set("x*")))
				if kind == rules.KindBreaker {
					require.NoError(t, e.Control(core.Scope{Kind: kind}, breaker.Open))
				}
				user := []core.Option{core.String("user", "x"), core.NoWait()}
				for _, resource := range []string{"x", "x beyond"} {
					if kind == rules.KindAdaptive { // its one place is taken
						guard, err := e.Entry(t.Context(), resource, user...)
						require.NoError(t, err)
						defer guard.Exit()
					}
					require.Zero(t, enter(e, resource, 2, user...), "before")
					require.NoError(t, e.Switch(scopeOn(resource), core.SwitchOff))
					require.Equal(t, 3, enter(e, resource, 3, user...), "off")
					would, off := wouldRefuse(t, e, resource)
					assert.True(t, off)
					if resource == "x" {
						assert.Equal(t, uint64(3), would)
					}
					require.NoError(t, e.Load(set("x*")))
					require.NoError(t, e.Load(rules.Set{}))
					require.NoError(t, e.Load(set("x*")))
					require.Equal(t, 3, enter(e, resource, 3, user...), "off after the rule has come again")
					require.NoError(t, e.Switch(scopeOn(resource), core.SwitchOn))
					_, off = wouldRefuse(t, e, resource)
					assert.False(t, off)
					require.NoError(t, e.Switch(scopeOn(resource), core.SwitchOff))
					require.NoError(t, e.Switch(scopeOn(resource), ""))
					if kind != rules.KindAdaptive { // it has started anew
						require.Zero(t, enter(e, resource, 2, user...), "released")
					}
					require.Empty(t, e.Status().Switches)
				}
			})
		}
	}
}

func TestEveryKindIsSwitchedInTheTests(t *testing.T) {
	e, _ := newEngine(t)
	for _, kind := range e.Kinds() {
		assert.Contains(t, refusingSets(), kind.Kind())
	}
}

func TestNarrowestSwitchCounts(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "a", Resource: "a"}, flow.Rule{Name: "b", Resource: "b"})
	all, flows, a, ofA := core.Scope{}, core.Scope{Kind: "flow"}, core.Scope{Resource: "a"}, core.Scope{Kind: "flow", Rule: "a"}
	for _, step := range []struct {
		scope core.Scope
		state string
		a, b  int // how many of one call pass
	}{
		{all, "off", 1, 1},
		{flows, "on", 0, 0},
		{a, "off", 1, 0},
		{ofA, "on", 0, 0},
		{flows, "", 0, 1},
		{ofA, "", 1, 1},
		{all, "", 1, 0},
		{a, "on", 0, 0},
		{flows, "off", 0, 1},
		{a, "", 1, 1},
		{flows, "", 0, 0},
	} {
		require.NoError(t, e.Switch(step.scope, step.state))
		assert.Equal(t, [2]int{step.a, step.b}, [2]int{enter(e, "a", 1), enter(e, "b", 1)}, "%v %s", step.scope, step.state)
	}
	assert.Empty(t, e.Status().Switches)
}

// A rule that its document makes a shadow does not refuse because it is switched on.
func TestShadowThatIsSwitchedOnStaysAShadow(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "a", Resource: "a", Shadow: true})
	require.NoError(t, e.Switch(core.Scope{Kind: "flow", Rule: "a"}, core.SwitchOn))
	assert.Equal(t, 1, enter(e, "a", 1))
}

// Of a rule that several resources share, one resource can be off.
func TestOneResourceOfASharedRuleIsOff(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "a", Match: "a*", Shared: true})
	require.NoError(t, e.Switch(core.Scope{Resource: "a1"}, core.SwitchOff))
	assert.Equal(t, []int{1, 0}, []int{enter(e, "a1", 1), enter(e, "a2", 1)})
}

func TestSwitchEndsByItselfWhenItsTimeIsOver(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "a", Resource: "a"}, flow.Rule{Name: "b", Resource: "b"})
	require.NoError(t, e.Load(rules.Set{
		Flow:    []flow.Rule{{Name: "a", Resource: "a"}, {Name: "b", Resource: "b"}},
		Breaker: []breaker.Rule{{Name: "c", Resource: "c", Threshold: 0.5}},
	}))
	order := core.Order{By: "alice", Reason: "it is wrong", For: 10 * time.Minute}
	require.NoError(t, e.Switch(core.Scope{Kind: "flow", Rule: "a"}, core.SwitchOff, order))
	order.For = time.Hour
	require.NoError(t, e.Switch(core.Scope{Resource: "b"}, core.SwitchOff, order))
	require.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "c"}, breaker.Open, core.Order{For: 20 * time.Minute}))
	require.NoError(t, e.Switch(core.Scope{}, core.SwitchOn))
	assert.Equal(t, begin.Add(10*time.Minute), e.Status().Switches[1].Until)

	ends := func(d time.Duration, resource string, passes int) {
		t.Helper()
		assert.Equal(t, 1-passes, enter(e, resource, 1))
		c.Advance(d)
		require.Eventually(t, func() bool {
			c.Advance(time.Millisecond) // an end may be seen that much later
			return enter(e, resource, 1) == passes
		}, time.Minute, time.Millisecond)
	}
	c.Advance(10*time.Minute - time.Nanosecond)
	assert.Equal(t, 1, enter(e, "a", 1))
	ends(time.Nanosecond, "a", 0)
	ends(10*time.Minute, "c", 1)
	ends(40*time.Minute, "b", 0)
	assert.Equal(t, core.Forced{State: core.SwitchOn, Since: clock.Instant(begin.UnixNano())}, e.Status().Switches[0], "it has no end")

	var ended []string
	events, _ := e.Events(0)
	for _, of := range events {
		if of.Ended {
			ended = append(ended, strings.TrimSpace(fmt.Sprint(of.Type, " ", of.Kind, of.Rule, of.Resource, " ", of.From, " ", of.By, " ", of.Text)))
		}
	}
	assert.Equal(t, []string{"switch flowa off alice it is wrong", "forced breakerc open", "switch b off alice it is wrong"}, ended)
}

// A later order replaces an earlier one, with its end.
func TestSwitchThatIsOrderedAgainEndsByTheLaterOrder(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Name: "a", Resource: "a"}, flow.Rule{Name: "b", Resource: "b"})
	a, b := core.Scope{Kind: "flow", Rule: "a"}, core.Scope{Kind: "flow", Rule: "b"}
	require.NoError(t, e.Switch(a, core.SwitchOff, core.Order{For: time.Minute}))
	require.NoError(t, e.Switch(b, core.SwitchOff, core.Order{For: 2 * time.Minute}))
	require.NoError(t, e.Switch(a, core.SwitchOff, core.Order{For: time.Hour}))
	c.Advance(2 * time.Minute)
	require.Eventually(t, func() bool { return enter(e, "b", 1) == 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, 1, enter(e, "a", 1))
	require.NoError(t, e.Switch(a, ""))
	assert.Zero(t, enter(e, "a", 1))
}

func TestSwitchesThatCannotBe(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Name: "a", Resource: "a"}, flow.Rule{Name: "p", Match: "p:*"})
	huge := strings.Repeat("p:", 1<<20)
	for _, test := range []struct {
		scope core.Scope
		state string
		err   error
		text  string
	}{
		{core.Scope{Kind: "flow", Rule: "b"}, "off", core.ErrUnknown, `flow "b"`},
		{core.Scope{Kind: "breaker", Rule: "a"}, "off", core.ErrUnknown, `breaker "a"`},
		{core.Scope{Kind: "flaw", Rule: "a"}, "off", core.ErrUnknown, `"flaw"`},
		{core.Scope{Kind: "flaw"}, "off", core.ErrUnknown, `"flaw"`},
		{core.Scope{Resource: "b"}, "off", core.ErrUnknown, `"b"`},
		{core.Scope{Resource: rule.OtherResources}, "off", core.ErrUnknown, ""},
		{core.Scope{Resource: huge}, "off", core.ErrUnknown, ""},
		{core.Scope{Kind: "flow", Rule: huge}, "off", core.ErrUnknown, ""},
		{core.Scope{Resource: "b"}, "", core.ErrUnknown, `"b"`},
		{core.Scope{Resource: "a", Kind: "flow"}, "off", nil, "has fields of two"},
		{core.Scope{Resource: "a", Rule: "a", Kind: "flow"}, "off", nil, "has fields of two"},
		{core.Scope{Resource: "a", Rule: "a"}, "off", nil, "has fields of two"},
		{core.Scope{Rule: "b"}, "off", core.ErrUnknown, `"b"`},
		{core.Scope{}, "shadow", nil, `"shadow"`},
		{core.Scope{}, huge, nil, "cannot be switched"},
	} {
		err := e.Switch(test.scope, test.state)
		require.Error(t, err)
		if test.err != nil {
			require.ErrorIs(t, err, test.err)
		}
		assert.Contains(t, err.Error(), test.text)
		assert.Less(t, len(err.Error()), 1000)
	}
	require.ErrorContains(t, e.Switch(core.Scope{}, "off", core.Order{For: -1}), "Order.For")
	require.ErrorContains(t, e.Switch(core.Scope{}, "off", core.Order{}, core.Order{}), "2 orders")
	require.NoError(t, e.Switch(core.Scope{Kind: "flow", Rule: "a"}, ""), "it is released already")
	require.NoError(t, e.Switch(core.Scope{Resource: "p:never called"}, "off"))
	assert.Equal(t, 1, enter(e, "p:never called", 1))
	assert.Len(t, e.Status().Switches, 1)
	e.Close()
	require.ErrorIs(t, e.Switch(core.Scope{}, "off"), core.ErrClosed)
}

// The kind of a rule can be left out where its name says which rule is meant.
func TestRuleIsSwitchedByItsNameAlone(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Flow:      []flow.Rule{{Name: "a", Resource: "a"}, {Name: "b", Resource: "b"}},
		Isolation: []isolation.Rule{{Name: "b", Resource: "b"}},
	}))
	require.NoError(t, e.Switch(core.Scope{Rule: "a"}, core.SwitchOff))
	assert.Equal(t, core.Scope{Kind: "flow", Rule: "a"}, e.Status().Switches[0].Scope)
	require.ErrorContains(t, e.Switch(core.Scope{Rule: "b"}, core.SwitchOff), `flow "b" and isolation "b" are rules of one name`)
	require.NoError(t, e.Load(rules.Set{}))
	require.NoError(t, e.Switch(core.Scope{Rule: "a"}, ""))
	assert.Empty(t, e.Status().Switches)
}

func TestSwitchesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	e, _ := newEngine(t, flow.Rule{Name: "p", Match: "p:*"})
	name := func(i int) core.Scope { return core.Scope{Resource: fmt.Sprint("p:", i)} }
	for i := range core.MaxSwitches {
		require.NoError(t, e.Switch(name(i), core.SwitchOff))
	}
	require.ErrorContains(t, e.Switch(name(core.MaxSwitches), core.SwitchOff), "too many scopes are switched")
	require.NoError(t, e.Switch(name(0), core.SwitchOn))
	require.NoError(t, e.Switch(name(0), ""))
	require.NoError(t, e.Switch(name(core.MaxSwitches), core.SwitchOff))
	require.NoError(t, e.Load(rules.Set{}))
	require.NoError(t, e.Switch(name(7), ""), "what is not known any more is released")
	assert.Len(t, e.Status().Switches, core.MaxSwitches-1)
}

func TestSwitchIsToldToTheLogTheObserverAndEvents(t *testing.T) {
	var lines bytes.Buffer
	var changes []core.ForcedChange
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{
		Clock: c, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		Observer: core.Observer{Forced: func(c core.ForcedChange) { changes = append(changes, c) }},
	})
	defer e.Close()
	load(t, e, flow.Rule{Name: "a", Resource: "a"})
	a := core.Scope{Kind: "flow", Rule: "a"}
	reason := "bad\x00\x1b[31m\nline\u202e \xff" + strings.Repeat("é", 1<<20)
	require.NoError(t, e.Switch(a, core.SwitchOff, core.Order{By: "al\nice", Reason: reason, For: time.Hour}))
	require.NoError(t, e.Switch(a, "", core.Order{By: "bob"}))
	require.Len(t, changes, 2)
	off := changes[0]
	assert.LessOrEqual(t, len(off.Reason), 256+len("…"))
	assert.Equal(t, "bad  [31m line  ", off.Reason[:len("bad  [31m line  ")])
	assert.Equal(t, core.ForcedChange{
		At: clock.Instant(begin.UnixNano()), Switch: true, From: "",
		Forced: core.Forced{
			Scope: a, State: "off", By: "al ice", Reason: off.Reason, Since: clock.Instant(begin.UnixNano()), Until: begin.Add(time.Hour),
		},
	}, off)
	assert.Equal(t, "off", changes[1].From)
	assert.Equal(t, "bob", changes[1].By)
	assert.Empty(t, changes[1].State)
	assert.Contains(t, lines.String(), `msg="penstock: an operator has switched rules" scope="flow \"a\"" state=off kind=flow rule=a by="al ice"`)
	assert.Contains(t, lines.String(), "until=")
	assert.Contains(t, lines.String(), `state=released kind=flow rule=a before=off by=bob`)
	events, _ := e.Events(0)
	require.Len(t, events, 3)
	assert.EqualValues(t, "switch", events[1].Type)
	assert.Equal(t, []string{"al ice", "off", "bob", "off"}, []string{events[1].By, events[1].To, events[2].By, events[2].From})
	assert.Equal(t, begin.Add(time.Hour), events[1].Until)
}

// Who forced a breaker open, and why, stands in the change of its state, too.
func TestStateThatWasForcedSaysByWhomAndWhy(t *testing.T) {
	var because string
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet,
		Observer: core.Observer{StateChanged: func(c core.StateChange) { because = c.Because }},
	})
	defer e.Close()
	loadBreaker(t, e, breaker.Rule{Name: "b", Resource: "b", Threshold: 0.5})
	require.NoError(t, e.Control(core.Scope{Kind: "breaker", Rule: "b"}, "open", core.Order{By: "alice", Reason: "the card network is down"}))
	assert.Equal(t, "forced to be open by alice: the card network is down", because)
	assert.Equal(t, "alice", e.Status().Forced[0].By)
}

// A rule that is off takes nothing of the fleet.
func TestSwitchedOffRuleOfTheFleetTakesNoTokens(t *testing.T) {
	engines := fleetOf(t, 1, store(), quota(2, fleet.ModeLease))
	defer closeAll(engines)
	e := engines[0]
	require.NoError(t, e.Switch(core.Scope{}, core.SwitchOff))
	assert.Equal(t, 100, enter(e, "r", 100))
	all := e.Explain("r")
	require.Len(t, all, 1)
	assert.Zero(t, all[0].WouldBlock+all[0].Blocked)
	for _, limit := range e.Status().Fleet.Limits {
		assert.Zero(t, limit.Demand, limit.Key)
	}
}

func TestCallsUnderRulesThatAreOffDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, c := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Flow:      []flow.Rule{{Name: "a", Resource: "a"}, {Name: "q", Resource: "a", Limit: 1, Algorithm: flow.Throttle}},
		Isolation: []isolation.Rule{{Name: "a", Resource: "a"}},
		Breaker:   []breaker.Rule{{Name: "a", Resource: "a", Threshold: 0.5}},
	}))
	require.NoError(t, e.Switch(core.Scope{}, core.SwitchOff))
	enter(e, "a", 10)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		c.Advance(time.Millisecond)
		guard, _ := e.Entry(context.Background(), "a")
		guard.Exit()
	}))
}
