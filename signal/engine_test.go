package signal

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// busy is a rule that refuses calls while more than half of the CPU time is in use.
type busy struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
}

// busyLimiter enforces it.
type busyLimiter struct{ cpu *rule.Reading }

func (l busyLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	if cpu, ok := l.cpu.Load(); ok && cpu > 0.5 {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (busyLimiter) RetryAfter(rule.Call) time.Duration         { return 0 }
func (busyLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (busyLimiter) Status(clock.Instant) rule.Status           { return rule.Status{} }
func (busyLimiter) Idle(clock.Instant) bool                    { return true }

func busyKind() *rule.Type[busy] {
	common := func(b *busy) rule.Common {
		return rule.Common{
			Name: &b.Name, Resource: &b.Resource, Match: &b.Match, Shared: &b.Shared, Origin: &b.Origin, Shadow: &b.Shadow,
		}
	}
	return rule.Define(rule.Spec[busy]{
		Kind: "busy", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: common,
		Signals: func(*busy) []rule.Signal { return []rule.Signal{rule.SignalCPU} },
		New:     func(_ *busy, env rule.Env) rule.Limiter { return busyLimiter{env.Signals.Reading(rule.SignalCPU)} },
	})
}

// An engine refuses calls by the CPU of its container. While that cannot be read it lets
// them pass, and says why, once.
func TestEngineFollowsTheCPUOfItsContainer(t *testing.T) {
	m := newMachine(t, container())
	var log bytes.Buffer
	engine := core.New(core.Config{
		Clock: m.clock, Signals: m.source, SignalInterval: -1, Kinds: []rule.Definition{busyKind()},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Custom: []rule.Rule{busyKind().Of(busy{Resource: "r"})}}))

	steps := []struct {
		usage float64 // of the container, at the end of the second
		lost  bool    // its file system
		pass  bool
	}{
		{usage: 7, pass: true},
		{usage: 7.4, pass: true},
		{usage: 8.3},
		{usage: 9, lost: true, pass: true},
		{usage: 9.9, lost: true, pass: true},
		{usage: 10.1}, // the mean since it was read last
		{usage: 10.2, pass: true},
	}
	for i, step := range steps {
		m.write(cpu2(v2Top, "100000", step.usage, 1))
		m.unreadable = ""
		if step.lost {
			m.unreadable = v2Top + "/cpu.stat"
		}
		engine.SampleSignals()
		guard, err := engine.Entry(t.Context(), "r")
		require.Equal(t, step.pass, err == nil, "step %d", i)
		if err == nil {
			guard.Exit()
		}
		if status := engine.Status().Signals[0]; step.lost {
			require.ErrorContains(t, status.Err, "signal: cpu: read /sys/fs/cgroup/cpu.stat: permission denied")
		} else {
			require.NoError(t, status.Err)
		}
		m.clock.Advance(time.Second)
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be read"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "can be read again"), log.String())
}
