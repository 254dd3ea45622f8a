package peer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Baseline is the name of Penstock as it is commonly used.
const Baseline = "penstock"

// Resolved is the name of Penstock with a resource that is looked up once.
const Resolved = "penstock-resolved"

// Fastest is the name of Penstock at its fastest: with a resource that is looked up once
// and a clock that reads the time once a millisecond.
const Fastest = "penstock-coarse"

// caller is the origin that the calls of a rule with an origin come from.
const caller = "mobile"

// penstockLimiters returns the algorithms that Penstock has.
func penstockLimiters(settings Settings) []Limiter {
	return []Limiter{
		penstock(Baseline, settings, flow.Rule{Resource: resource}, byName),
		penstock("penstock-strict", settings, flow.Rule{Resource: resource, Strict: true}, byName),
		penstock("penstock-fixed", settings, flow.Rule{Resource: resource, Algorithm: flow.FixedWindow}, byName),
		penstock("penstock-bucket", settings, flow.Rule{Resource: resource, Algorithm: flow.TokenBucket}, byName),
	}
}

// PenstockVariants returns other ways to call Penstock and to name resources in rules,
// for comparison with the baseline.
func PenstockVariants(settings Settings) []Limiter {
	return []Limiter{
		penstock(Resolved, settings, flow.Rule{Resource: resource}, resolved),
		penstock("penstock-pattern", settings, flow.Rule{Match: "bench:*"}, byName),
		penstock("penstock-origin", settings, flow.Rule{Resource: resource, Origin: caller}, withOrigin),
		coarse(settings),
	}
}

// coarse returns Penstock at its fastest.
func coarse(settings Settings) Limiter {
	return Limiter{Name: Fastest, New: func(limit int) (Try, error) {
		settings.Clock = coarseClock()
		return penstock("", settings, flow.Rule{Resource: resource}, resolved).New(limit)
	}}
}

// coarseClock returns a clock that runs until the process ends. It is the same one for all: a
// hundred of them would slow down whatever is measured last.
var coarseClock = sync.OnceValue(func() clock.Clock { return clock.NewCoarse(context.Background(), time.Millisecond) }) //nolint:gochecknoglobals // as it says

func penstockQueue(settings Settings) Limiter {
	return penstock(Baseline, settings,
		flow.Rule{Resource: resource, Algorithm: flow.Throttle, MaxWait: longestWait}, byName)
}

// penstock returns a limiter that enforces the rule. The try is made by way.
func penstock(name string, settings Settings, rule flow.Rule, way func(*core.Engine) Try) Limiter {
	return Limiter{Name: name, New: func(limit int) (Try, error) {
		engine := newEngine(settings)
		rule := rule
		rule.Limit = float64(limit)
		if err := engine.Load(rules.Set{Flow: []flow.Rule{rule}}); err != nil {
			return nil, err
		}
		return way(engine), nil
	}}
}

func newEngine(settings Settings) *core.Engine {
	return core.New(core.Config{
		Clock:        settings.Clock,
		Logger:       slog.New(slog.DiscardHandler),
		MaxResources: settings.MaxResources,
	})
}

func byName(engine *core.Engine) Try {
	return func(int) bool {
		guard, err := engine.Entry(context.Background(), resource)
		if err != nil {
			return false
		}
		guard.Exit()
		return true
	}
}

func resolved(engine *core.Engine) Try {
	handle := engine.Resource(resource)
	return func(int) bool {
		guard, err := handle.Entry(context.Background())
		if err != nil {
			return false
		}
		guard.Exit()
		return true
	}
}

func withOrigin(engine *core.Engine) Try {
	return func(int) bool {
		guard, err := engine.Entry(context.Background(), resource, core.Origin(caller))
		if err != nil {
			return false
		}
		guard.Exit()
		return true
	}
}

type penstockGuards struct{ engine *core.Engine }

func (p penstockGuards) Prepare(set []Rule) func() error {
	native := make([]flow.Rule, len(set))
	for i, rule := range set {
		native[i] = flow.Rule{Name: fmt.Sprint(i), Resource: rule.Resource, Limit: rule.Limit}
		switch rule.Kind {
		case WarmUp:
			native[i].WarmUp = flow.WarmUp{Period: warmUpPeriod}
		case Throttle:
			native[i].Algorithm, native[i].MaxWait = flow.Throttle, longestWait
		case Reject:
		}
	}
	return func() error { return p.engine.Load(rules.Set{Flow: native}) }
}

func (p penstockGuards) Call(resource string) bool {
	guard, err := p.engine.Entry(context.Background(), resource)
	if err != nil {
		return false
	}
	guard.Exit()
	return true
}

func (p penstockGuards) Enter(resource string) (func(), error) {
	guard, err := p.engine.Entry(context.Background(), resource)
	return guard.Exit, err
}
