package penstockconnect_test

import (
	"cmp"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// probe is a kind of rule for tests. It records what rules get to know of calls, and
// refuses them if refuses is set.
type probe struct {
	reason  rule.Reason
	refuses time.Duration // after which calls could pass; 0 lets all pass
	key     string        // of the attribute that it looks at; "user" if it is empty

	mu    sync.Mutex
	calls []rule.Call
	exits []rule.Exit
}

// probeRule is the one rule of that kind: for the calls of one origin, if that is given.
type probeRule struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

// newEngine returns an engine with a probe before all calls, which looks at one
// attribute.
func (p *probe) newEngine(t *testing.T, origin string) *core.Engine {
	t.Helper()
	common := func(r *probeRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[probeRule]{
		Kind: "probe", Reason: p.reason, Common: common, Fields: rule.TargetFields(common),
		Attributes: func(probeRule) []string { return p.keys() },
		New:        func(probeRule, rule.Env) rule.Limiter { return p },
	})
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Now().Add(-time.Hour)), Logger: slog.New(slog.DiscardHandler),
		Kinds: []rule.Definition{kind},
	})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Custom: []rule.Rule{kind.Of(probeRule{Name: "mine", Match: "*", Origin: origin})}}))
	return engine
}

func (p *probe) keys() []string { return []string{cmp.Or(p.key, "user")} }

func (p *probe) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	if p.refuses > 0 {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (p *probe) Done(_ rule.Ticket, e rule.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exits = append(p.exits, e)
}

func (p *probe) GiveBack(clock.Instant, rule.Ticket, int32) {}

func (p *probe) RetryAfter(rule.Call) time.Duration { return p.refuses }

func (p *probe) Status(clock.Instant) rule.Status { return rule.Status{} }

func (p *probe) Idle(clock.Instant) bool { return true }

// call returns what was known of the last call.
func (p *probe) call() rule.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		return rule.Call{}
	}
	return p.calls[len(p.calls)-1]
}

// outcomes returns how calls ended, in the order of their ends.
func (p *probe) outcomes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, e := range p.exits {
		switch {
		case e.Failed:
			list = append(list, "failed")
		case e.Ignored:
			list = append(list, "ignored")
		default:
			list = append(list, "ended well")
		}
	}
	return list
}
