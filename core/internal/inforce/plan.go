package inforce

import (
	"math"
	"sync/atomic"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/rule"
)

// Plan is the rules in force for one resource, as chains. It never changes, except that
// before is cleared.
//
// A set of rules is swapped for many resources at once. Each changed resource gets a plan
// for the next generation, which is linked to the present plan. Then the generation of the
// engine is incremented. A call reads the generation first and takes the plan that is in
// force in it.
type Plan struct {
	// What most calls read is in the first 64 bytes, with that of the chain.
	Since  uint64     // the generation in which the plan came into force
	Others call.Chain // for calls whose origin no rule names; it leads to the chains for those that one does

	Rules  []Planned            // all of them, in the order in which they are asked
	Before atomic.Pointer[Plan] // the one that it replaces; nil for the first, and after the swap
}

// Planned is a version of a rule in a plan, with its limiter and the state that it keeps
// for the resource.
type Planned struct {
	Rule    rule.Rule
	State   *State
	Limiter rule.Limiter
	Off     bool // it is switched off here
}

// Refuses says whether the rule can refuse calls for now: it is no shadow, is not switched off, and
// does not demote calls instead.
func (p *Planned) Refuses() bool { return !p.Off && !p.Rule.Target().Shadow && !p.Rule.Demotes() }

// IsInForce says whether the latest plan of a resource is in force in a generation.
func (p *Plan) IsInForce(generation uint64) bool {
	return p.Since <= generation && generation != Closed
}

// ChainFor returns the rules that a call of an origin has to pass, "" if it did not say.
func (p *Plan) ChainFor(origin string) *call.Chain {
	if p.Others.Details == nil { // as of most, of which no rule names an origin
		return &p.Others
	}
	return p.Others.ForOrigin(origin)
}

// HasOrigin says whether a rule names the origin.
func (p *Plan) HasOrigin(origin string) bool { return p.Others.HasOrigin(origin) }

// isFor says whether a rule with the origin of, "" for all, is for calls of an origin that a rule
// names, or for [rule.OtherOrigins].
func isFor(of, origin string) bool { return of == "" || of == origin }

// Closed is the generation of an engine that was closed.
const Closed = math.MaxUint64

// Applying returns the rules that apply to a call of an origin, in the order of asking.
func (p *Plan) Applying(origin string) (rules []Planned) {
	if !p.HasOrigin(origin) {
		origin = rule.OtherOrigins
	}
	for _, entry := range p.Rules {
		if isFor(entry.Rule.Target().Origin, origin) {
			rules = append(rules, entry)
		}
	}
	return rules
}
