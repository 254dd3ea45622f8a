package core

import "github.com/penstock-go/penstock/rule"

// Applied is a rule as it applies to a call.
type Applied struct {
	RuleSnapshot

	Source       string // that the rule comes from; "" for one from code
	Document     string // and where it begins in there
	Line, Column int
}

// Explain returns the rules that a call of the resource with these options would
// have to pass, in the order in which they are asked: shadow rules come last. It
// neither calls the resource nor adds its name. It is for people, and takes longer
// than a call.
func (e *Engine) Explain(resource string, opts ...Option) []Applied {
	var applied []Applied
	now := e.clock.Now()
	for _, p := range e.applying(resource, opts) {
		applied = append(applied, Applied{RuleSnapshot: p.snapshot(now)})
	}
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	for i := range applied {
		a := &applied[i]
		source, at := e.rules.book.Where(rule.Key{Kind: a.Kind, Name: a.Name})
		a.Source, a.Document, a.Line, a.Column = source, at.Document, at.Line, at.Column
	}
	return applied
}

// Quotas returns the state of the rules that limit how much passes in a time, of those
// that a call of the resource with these options has to pass; shadow rules left
// out. Their Quota is set. It is what an adapter tells its callers of the limits that
// they are under.
func (e *Engine) Quotas(resource string, opts ...Option) []RuleSnapshot {
	var states []RuleSnapshot
	now := e.clock.Now()
	for _, p := range e.applying(resource, opts) {
		if p.rule.Target().Shadow || p.rule.Type().Phase() != rule.PhaseRate {
			continue
		}
		if s := p.snapshot(now); s.Quota != nil {
			states = append(states, s)
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
		origin = rule.OtherOrigins
	}
	var rules []planned
	for _, entry := range p.rules {
		if isFor(entry.rule.Target(), origin) {
			rules = append(rules, entry)
		}
	}
	return rules
}
