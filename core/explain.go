package core

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/rule"
)

// Applied is a rule as it applies to a call.
type Applied struct {
	RuleSnapshot

	// Attributes are the attributes that the rule looks at, in its order, as the call
	// has them; nil for rules that look at none.
	Attributes []AppliedAttribute

	// RetryAfter is how long it takes until such a call passes the rule if nobody else
	// comes: 0 if it would pass now or the time is unknown, [rule.Never] if it cannot pass.
	RetryAfter time.Duration

	Source       string // that the rule comes from; "" for one from code
	Document     string // and where it begins in there
	Line, Column int
}

// AppliedAttribute is an attribute that a rule looks at.
type AppliedAttribute struct {
	Key   string
	Value rule.Attribute // nothing if the call does not have it
}

// Explain returns the rules that a call of the resource with these options would
// have to pass, in the order in which they are asked: shadow rules come last. It
// neither calls the resource nor adds its name. It is for people, and takes longer
// than a call.
func (e *Engine) Explain(resource string, opts ...Option) []Applied {
	var applied []Applied
	now := e.clock.Now()
	for _, p := range e.applying(resource, opts) {
		a := Applied{RuleSnapshot: snapshotOf(&p, now)}
		call, found := askedOf(context.Background(), &p, now, opts)
		a.Attributes, a.RetryAfter = found, p.Limiter.RetryAfter(call)
		switch {
		case a.RetryAfter == rule.Forbidden:
			a.RetryAfter = rule.Never
		case p.Rule.Demotes():
			a.RetryAfter = 0
		}
		if found != nil {
			addQuota(&a.RuleSnapshot, &p, call)
		}
		applied = append(applied, a)
	}
	e.locate(applied)
	return applied
}

// locate adds where the rules come from.
func (e *Engine) locate(applied []Applied) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	for i := range applied {
		a := &applied[i]
		source, at := e.rules.book.Where(rule.Key{Kind: a.Kind, Name: a.Name})
		a.Source, a.Document, a.Line, a.Column = source, at.Document, at.Line, at.Column
	}
}

// askedOf returns a call with these options as the limiter gets it, and what the rule finds when it
// looks at the attributes of the call; nil if it looks at none.
func askedOf(ctx context.Context, p *inforce.Planned, now clock.Instant, opts []Option) (asked rule.Call, found []AppliedAttribute) {
	keys := p.Rule.Attributes()
	q, parts := requestOf(ctx, now, opts), new([rule.MaxKeys]rule.Attribute)
	for i, key := range keys {
		parts[i] = q.Attribute(opts, key)
		found = append(found, AppliedAttribute{key, parts[i]})
	}
	value := parts[0] // nothing if it looks at none
	if len(keys) > 1 {
		value = rule.Composite(parts, len(keys))
	}
	return q.With(value), found
}

// addQuota adds what is left of the limit that the call is held against, if the rule has one for
// each value.
func addQuota(to *RuleSnapshot, p *inforce.Planned, asked rule.Call) {
	if reader, ok := p.Limiter.(rule.QuotaReader); ok {
		if to.Quota = reader.QuotaOf(asked); to.Quota != nil {
			to.Value = asked.Attribute
		}
	}
}

// Quotas returns the state of the rules that limit how much passes in a time, of those
// that a call of the resource with these options has to pass; shadow rules left
// out. Their Quota is set: of rules with a limit for each value, that of the value of the call.
// It is what an adapter tells its callers of the limits that they are under.
func (e *Engine) Quotas(resource string, opts ...Option) []RuleSnapshot {
	p := e.peek(resource).planNow()
	if p == nil {
		return nil
	}
	return quotasOf(context.Background(), p, e.clock.Now(), opts)
}

// PartitionKey returns what tells the value of the snapshot from others, for clients who know the
// value: the first nine bytes of the SHA-256 of the name of the rule, a zero byte, and the value as
// [rule.Attribute.GoString] writes it. It is the same on all instances; nil without a Value.
func (s *RuleSnapshot) PartitionKey() []byte {
	if !s.Value.IsSet() {
		return nil
	}
	const length = 9 // so many values do not collide, and base64 needs no padding
	sum := sha256.Sum256([]byte(s.Name + "\x00" + s.Value.GoString()))
	return sum[:length]
}

// LimitsValues says whether a rule that such a call has to pass has a limit for each value of an
// attribute, so that what Quotas returns is different for each caller. Shadow rules are left out.
func (e *Engine) LimitsValues(resource string, opts ...Option) bool {
	for _, p := range e.applying(resource, opts) {
		if _, byValue := p.Limiter.(rule.QuotaReader); byValue && p.Refuses() {
			return true
		}
	}
	return false
}

// NamedOrigin returns the origin if a rule on the resource names it, else "": to the
// rules all other callers are one. It is for what depends on the caller, such as
// the answer to a refusal, and would be kept for each of them otherwise, of
// whom there is no end. It neither calls the resource nor remembers its name.
func (e *Engine) NamedOrigin(resource, origin string) string {
	if origin == "" {
		return ""
	}
	if p := e.peek(resource).planNow(); p != nil && p.HasOrigin(origin) {
		return origin
	}
	return ""
}

// applying returns the rules that apply to such a call, in the order of asking.
func (e *Engine) applying(resource string, opts []Option) []inforce.Planned {
	p := e.peek(resource).planNow()
	if p == nil {
		return nil
	}
	return p.Applying(requestOf(context.Background(), 0, opts).Origin)
}

// requestOf returns what these options say of a call. Of a number of tokens that no call can take Entry tells.
func requestOf(ctx context.Context, now clock.Instant, opts []Option) (q call.Request) {
	_ = q.Read(ctx, "", now, opts)
	return
}

// quotasOf returns the state of the rules of [Engine.Quotas].
func quotasOf(ctx context.Context, p *inforce.Plan, now clock.Instant, opts []Option) (states []RuleSnapshot) {
	for _, of := range p.Applying(requestOf(ctx, now, opts).Origin) {
		if !of.Refuses() {
			continue
		}
		switch _, byValue := of.Limiter.(rule.QuotaReader); {
		case byValue:
			s := identityOf(&of)
			if call, found := askedOf(ctx, &of, now, opts); found != nil {
				addQuota(&s, &of, call)
			}
			if s.Quota != nil {
				states = append(states, s)
			}
		case of.Rule.Type().Phase() == rule.PhaseRate:
			if s := snapshotOf(&of, now); s.Quota != nil {
				states = append(states, s)
			}
		}
	}
	return states
}
