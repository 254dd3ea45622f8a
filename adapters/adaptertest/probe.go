package adaptertest

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Outcome is how a call ended, as rules get to know it.
type Outcome string

// The outcomes of calls.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	// Ignored calls count neither as failed nor as successes.
	Ignored Outcome = "ignored"
)

// Probe is a rule on all calls. It records what rules get to know of them, and refuses them
// if RefuseAfter is set. Set the fields before [Probe.NewEngine]. It is safe for concurrent
// use.
type Probe struct {
	// Reason is the reason of its refusals. Defaults to [rule.RateLimited].
	Reason rule.Reason

	// RefuseAfter is the time after which refused calls could pass. Defaults to 0: all
	// calls pass.
	RefuseAfter time.Duration

	// Attribute is the key of the attribute that it looks at. Defaults to "user".
	Attribute string

	// Origin is whose calls it is for. Defaults to all.
	Origin string

	mu    sync.Mutex
	calls []rule.Call // guarded by mu
	exits []Outcome   // guarded by mu
}

// probeName is the name of the rule that a [Probe] is.
const probeName = "probe"

// probeRule is the rule in the documents.
type probeRule struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

// NewEngine returns an engine whose only rule is the probe, which is closed after the test.
func (p *Probe) NewEngine(tb testing.TB) *core.Engine {
	tb.Helper()
	virtual := clock.NewVirtual(time.Now().Add(-time.Hour))
	return probeEngine(tb, core.Config{Clock: virtual}, p.Reason, cmp.Or(p.Attribute, "user"), p.Origin, p)
}

// probeEngine returns an engine with one rule on everything.
func probeEngine(
	tb testing.TB, config core.Config, reason rule.Reason, attribute, origin string, limiter rule.Limiter,
) *core.Engine {
	tb.Helper()
	common := func(r *probeRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[probeRule]{
		Kind: "probe", Reason: reason, Common: common,
		Attributes: func(*probeRule) []string { return []string{attribute} },
		New:        func(*probeRule, rule.Env) rule.Limiter { return limiter },
	})
	config.Logger, config.Kinds = slog.New(slog.DiscardHandler), []rule.Definition{kind}
	if config.Exempt == nil {
		config.Exempt = []string{} // the rule sees all calls, whatever they are called
	}
	engine := core.New(config)
	tb.Cleanup(engine.Close)
	only := kind.Of(probeRule{Name: probeName, Match: "*", Origin: origin})
	require.NoError(tb, engine.Load(rules.Set{Custom: []rule.Rule{only}}))
	return engine
}

// Calls returns what rules got to know of the calls, in their order.
func (p *Probe) Calls() []rule.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// LastCall returns what rules got to know of the last call, the zero Call if there was none.
func (p *Probe) LastCall() rule.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		return rule.Call{}
	}
	return p.calls[len(p.calls)-1]
}

// Outcomes returns how calls ended, in the order of their ends.
func (p *Probe) Outcomes() []Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.exits)
}

// RequireOutcome waits until the only call has ended, and checks how.
func (p *Probe) RequireOutcome(t *testing.T, want Outcome) {
	t.Helper()
	p.requireOutcome(t, eventTimeout, want)
}

func (p *Probe) requireOutcome(t *testing.T, timeout time.Duration, want Outcome) {
	t.Helper()
	p.requireEnd(t, timeout)
	require.Equal(t, []Outcome{want}, p.Outcomes())
}

// requireEnd waits until a call has ended.
func (p *Probe) requireEnd(t *testing.T, timeout time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.Outcomes()) > 0 }, timeout, interval, "the call should have ended")
}

// Acquire implements [rule.Limiter].
func (p *Probe) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	if p.RefuseAfter > 0 {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

// Done implements [rule.Finisher].
func (p *Probe) Done(_ rule.Ticket, e rule.Exit) {
	outcome := Succeeded
	switch {
	case e.Failed:
		outcome = Failed
	case e.Ignored:
		outcome = Ignored
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exits = append(p.exits, outcome)
}

// GiveBack implements [rule.Limiter].
func (p *Probe) GiveBack(clock.Instant, rule.Ticket, int32) {}

// RetryAfter implements [rule.Limiter].
func (p *Probe) RetryAfter(rule.Call) time.Duration { return p.RefuseAfter }

// Status implements [rule.Limiter].
func (p *Probe) Status(clock.Instant) rule.Status { return rule.Status{} }

// Idle implements [rule.Limiter].
func (p *Probe) Idle(clock.Instant) bool { return true }

// AttributeReader is a rule on all calls that looks at one attribute and allocates nothing,
// for benchmarks and for tests that count allocations. It is for one call at a time.
type AttributeReader struct {
	// Key is that of the attribute.
	Key string

	// Text is that of the last call, Found is false if it had none.
	Text  string
	Found bool
}

// NewEngine returns an engine with the rule, on the system's clock. It is closed after the
// test.
func (r *AttributeReader) NewEngine(tb testing.TB) *core.Engine {
	tb.Helper()
	return probeEngine(tb, core.Config{}, rule.RateLimited, r.Key, "", r)
}

// Acquire implements [rule.Limiter].
func (r *AttributeReader) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	r.Text, r.Found = c.Attribute.Text()
	return 0, rule.Pass
}

// GiveBack implements [rule.Limiter].
func (*AttributeReader) GiveBack(clock.Instant, rule.Ticket, int32) {}

// RetryAfter implements [rule.Limiter].
func (*AttributeReader) RetryAfter(rule.Call) time.Duration { return 0 }

// Status implements [rule.Limiter].
func (*AttributeReader) Status(clock.Instant) rule.Status { return rule.Status{} }

// Idle implements [rule.Limiter].
func (*AttributeReader) Idle(clock.Instant) bool { return true }
