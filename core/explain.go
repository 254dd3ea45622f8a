package core

import (
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Applied is a rule as it applies to a call.
type Applied struct {
	FlowSnapshot
	Refused    uint64 // calls of the resource
	WouldBlock uint64 // calls that it would have refused while it was a shadow

	Source       string // that the rule comes from; "" for one from code
	Document     string // and where it begins in there
	Line, Column int
}

// Explain returns the rules that a call of the resource with these options would
// be held against, in the order in which it is: shadow rules come last. It
// neither calls the resource nor remembers its name. It is for people who ask,
// and takes longer than a call.
func (e *Engine) Explain(resource string, opts ...Option) []Applied {
	var applied []Applied
	now := e.clock.Now()
	for _, entry := range e.applying(resource, opts) {
		refused := entry.hold.refusals.snapshot()
		applied = append(applied, Applied{
			FlowSnapshot: entry.snapshot(now), Refused: refused.Count, WouldBlock: refused.WouldBlock,
		})
	}
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	for i := range applied {
		a := &applied[i]
		source, at := e.placeOfRule(rules.KindFlow, a.Rule.Name)
		a.Source, a.Document, a.Line, a.Column = source, at.Document, at.Line, at.Column
	}
	return applied
}

// Ceilings returns the state of the flow rules that a call of the resource with
// these options is held against, shadow rules left out: what an adapter tells
// its callers of the limits they are under.
func (e *Engine) Ceilings(resource string, opts ...Option) []FlowSnapshot {
	var states []FlowSnapshot
	now := e.clock.Now()
	for _, entry := range e.applying(resource, opts) {
		if !entry.rule.Target().Shadow {
			states = append(states, entry.snapshot(now))
		}
	}
	return states
}

// NamedOrigin returns the origin if a rule on the resource names it, else "": to the
// rules all other callers are one. It is for what depends on the caller, such as
// the answer to a refusal, and would be kept for each of them otherwise, of
// whom there is no end. It neither calls the resource nor remembers its name.
func (e *Engine) NamedOrigin(resource, origin string) string {
	if origin == "" {
		return ""
	}
	if p := e.resources.peek(resource).planNow(); p != nil && p.origins[origin] != nil {
		return origin
	}
	return ""
}

// applying returns the rules that apply to such a call, in the order of asking.
func (e *Engine) applying(resource string, opts []Option) []planned {
	p := e.resources.peek(resource).planNow()
	if p == nil {
		return nil
	}
	origin := originOf(opts)
	if _, named := p.origins[origin]; !named {
		origin = flow.OtherOrigins
	}
	var rules []planned
	for _, entry := range p.rules {
		if entry.isFor(origin) {
			rules = append(rules, entry)
		}
	}
	return rules
}

// placeOfRule returns where a rule in force comes from. The caller holds
// rules.mu.
func (e *Engine) placeOfRule(kind rules.Kind, name string) (source string, at rules.Position) {
	if p, _ := e.rules.find(rules.Key{Kind: kind, Name: name}); p != nil && p.document != nil {
		at, _ := p.given.Position(kind, name)
		return p.document.source.name, at
	}
	return "", rules.Position{}
}
