package simulate

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// gated is a rule of a kind for tests. As many calls may be under way as a signal shows
// hundredths; while it shows nothing, any number.
type gated struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
	Signal                rule.Signal
}

func gatedKind() *rule.Type[gated] {
	common := func(g *gated) rule.Common {
		return rule.Common{Name: &g.Name, Resource: &g.Resource, Match: &g.Match, Shared: &g.Shared, Origin: &g.Origin, Shadow: &g.Shadow}
	}
	gauges := []rule.Gauge{{Name: "limit"}, {Name: "in_flight"}, {Name: "queued"}}
	for _, p := range rule.Priorities() {
		gauges = append(gauges, rule.Gauge{Name: "shed", Counter: true, Label: "priority", LabelValue: p.String()})
	}
	return rule.Define(rule.Spec[gated]{
		Kind: "gated", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: common,
		Signals:    func(g *gated) []rule.Signal { return []rule.Signal{g.Signal} },
		Gauges:     gauges,
		LimitMoves: true,
		New: func(g *gated, env rule.Env) rule.Limiter {
			return &gate{reading: env.Signals.Reading(g.Signal), shed: make(map[rule.Priority]float64)}
		},
	})
}

// gatedRules returns a set with a rule for each signal on the resource "r".
func gatedRules(signals ...rule.Signal) (set rules.Set) {
	for _, signal := range signals {
		set.Custom = append(set.Custom, gatedKind().Of(gated{Name: string(signal), Resource: "r", Signal: signal}))
	}
	return set
}

// gate is used by one goroutine.
type gate struct {
	reading  *rule.Reading
	inFlight float64
	shed     map[rule.Priority]float64
}

func (g *gate) limit() float64 {
	value, ok := g.reading.Load()
	if !ok {
		return math.NaN()
	}
	return math.Round(100 * value)
}

func (g *gate) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if g.inFlight >= g.limit() {
		g.shed[c.Priority()]++
		return 0, rule.Block
	}
	g.inFlight++
	return 0, rule.Pass
}

func (g *gate) GiveBack(clock.Instant, rule.Ticket, int32) { g.inFlight-- }

func (g *gate) Done(rule.Ticket, rule.Exit) { g.inFlight-- }

func (g *gate) RetryAfter(rule.Call) time.Duration { return 0 }

func (g *gate) Idle(clock.Instant) bool { return false }

func (g *gate) Status(clock.Instant) rule.Status {
	gauges := []float64{g.limit(), g.inFlight, math.NaN()}
	for _, p := range rule.Priorities() {
		gauges = append(gauges, g.shed[p])
	}
	return rule.Status{Gauges: gauges}
}
