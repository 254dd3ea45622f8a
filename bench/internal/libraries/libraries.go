// Package libraries protects simulated services by adaptive limiters of other libraries. They
// read the time of their process, so the simulations run in bubbles of testing/synctest.
package libraries

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/overload"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one of another library.
type limiter interface {
	// enter asks whether a call may pass. End ends it; counts tells whether it took as long as
	// its work did.
	enter() (end func(counts bool), ok bool)
}

// limiterRule is a rule that a limiter enforces.
type limiterRule struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
}

// kind returns a kind of rules for limiters that are made with the reading of the processor.
func kind(name rule.Kind, create func(cpu *rule.Reading) limiter) rule.Definition {
	common := func(r *limiterRule) rule.Common {
		return rule.Common{Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow}
	}
	return rule.Define(rule.Spec[limiterRule]{
		Kind: name, Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: common,
		Hints: func(*limiterRule) []rule.Signal { return []rule.Signal{rule.SignalCPU} },
		New: func(_ *limiterRule, env rule.Env) rule.Limiter {
			reach(env.Now)
			return &enforcer{limiter: create(env.Signals.Reading(rule.SignalCPU)), ends: make(map[rule.Ticket]func(bool))}
		},
	})
}

// All returns the limiters, each with one for all calls, and with one for each resource where
// that is how it may be used. Within runs a simulation in a bubble.
func All(within func(run func())) []overload.Library {
	failsafe, bbr := kind("failsafe", newFailsafe), kind("bbr", newBBR)
	return []overload.Library{
		{Name: "failsafe", Rules: `failsafe: [{match: "*", perResource: false}]`, Kinds: []rule.Definition{failsafe}, Within: within},
		{Name: "failsafe-endpoints", Rules: `failsafe: [{match: "*"}]`, Kinds: []rule.Definition{failsafe}, Within: within},
		{Name: "bbr", Rules: `bbr: [{match: "*", perResource: false}]`, Kinds: []rule.Definition{bbr}, Within: within},
		{Name: "bbr-endpoints", Rules: `bbr: [{match: "*"}]`, Kinds: []rule.Definition{bbr}, Within: within},
	}
}

// reach moves the time of the bubble on to an instant of the simulation.
func reach(now clock.Instant) { time.Sleep(time.Until(now.Time())) }

// enforcer asks a limiter about the calls of a simulation. It is used by one goroutine.
type enforcer struct {
	limiter limiter
	ends    map[rule.Ticket]func(counts bool) // of calls under way
	last    rule.Ticket
}

func (e *enforcer) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	reach(c.Now)
	end, ok := e.limiter.enter()
	if !ok {
		return 0, rule.Block
	}
	e.last++
	e.ends[e.last] = end
	return e.last, rule.Pass
}

// end ends a call under way.
func (e *enforcer) end(now clock.Instant, ticket rule.Ticket, counts bool) {
	reach(now)
	e.ends[ticket](counts)
	delete(e.ends, ticket)
}

func (e *enforcer) GiveBack(now clock.Instant, ticket rule.Ticket, _ int32) {
	e.end(now, ticket, false)
}

func (e *enforcer) Done(ticket rule.Ticket, exit rule.Exit) { e.end(exit.Now, ticket, true) }

func (e *enforcer) RetryAfter(rule.Call) time.Duration { return 0 }

func (e *enforcer) Idle(clock.Instant) bool { return false }

func (e *enforcer) Status(clock.Instant) rule.Status { return rule.Status{} }
