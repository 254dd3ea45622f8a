package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// lamp is a limiter whose state can be forced to be "off": then it refuses calls.
type lamp struct {
	toy
	isOff bool
}

func (l *lamp) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	if l.isOff {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (l *lamp) Control(_ clock.Instant, state string) { l.isOff = state == "off" }

func TestStateThatIsReleasedWhileAResourceIsAddedIsReleasedThereToo(t *testing.T) {
	var meanwhile func() // when a limiter has been made, and its resource is not there yet
	kind := rule.Define(rule.Spec[gauge]{
		Kind: "lamp", Phase: rule.PhaseHealth, Reason: rule.Unavailable, Common: gaugeCommon,
		States: []string{"on", "off"}, Controls: []string{"off"},
		New: func(_ *gauge, env rule.Env) rule.Limiter {
			l := &lamp{isOff: env.Forced == "off"}
			meanwhile()
			return l
		},
	})
	for name, control := range map[string]func(*core.Engine, string) error{
		"rule": func(e *core.Engine, state string) error {
			return e.Control(core.Scope{Kind: "lamp", Rule: "x*"}, state)
		},
		"kind": func(e *core.Engine, state string) error { return e.Control(core.Scope{Kind: "lamp"}, state) },
	} {
		meanwhile = func() {}
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		t.Cleanup(e.Close)
		require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{kind.Of(gauge{Match: "x*"})}}))
		require.NoError(t, control(e, "off"))
		meanwhile = func() { require.NoError(t, control(e, "")) }
		require.Equal(t, 1, enter(e, "x1", 1), name)
		meanwhile = func() { require.NoError(t, control(e, "off")) }
		require.Zero(t, enter(e, "x2", 1), name)
		require.Zero(t, enter(e, "x1", 1), name)
		meanwhile = func() {}
		require.NoError(t, control(e, ""))
		require.Equal(t, 2, enter(e, "x1", 1)+enter(e, "x2", 1), name)
	}
}
