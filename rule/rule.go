package rule

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/internal/document"
)

// Rule is a rule of any kind, made by [Type.Of]. Set, SetFormer and Reset change it, which
// only the code that has just made it may do; else it never changes.
type Rule interface {
	// Type returns the kind of the rule.
	Type() Definition

	// Key identifies the rule among all of a set.
	Key() Key

	// Target returns which calls the rule is for.
	Target() Target

	// Attributes returns the keys of the attributes of calls that it looks at; nil if
	// none.
	Attributes() []string

	// Lists returns the names of the lists that it refers to; nil if none.
	Lists() []string

	// NamesValues says whether it names values of attributes, or lists of them.
	NamesValues() bool

	// Signals returns the signals that it reads; nil if none.
	Signals() []Signal

	// Hints returns the signals that it reads if the engine can; nil if none.
	Hints() []Signal

	// Fleet says whether its limit is one for all instances of the service.
	Fleet() bool

	// Places says whether that limit is of calls under way, see [Spec.Places].
	Places() bool

	// Demotes says whether it gives calls the lowest priority in place of refusing them.
	Demotes() bool

	// Counts says which calls take tokens, by how they end; "" if all do.
	Counts() Counts

	// Phase returns when it is asked: that of its kind, unless it demotes calls.
	Phase() Phase

	// Answer returns what adapters answer to refusals; zero to answer by the Reason.
	Answer() Answer

	// Forbids returns what adapters answer to calls that are [Forbidden]; zero to answer by
	// the reason Denied.
	Forbids() Answer

	// Ends returns when the rule stops having any effect; the zero time if it never does.
	Ends() time.Time

	// Value returns the rule as its kind has it, such as a flow.Rule.
	Value() any

	// Equal says whether both are the same rule of the same kind.
	Equal(other Rule) bool

	// WithDefaults returns a copy with its defaults filled in.
	WithDefaults() Rule

	// Clone returns a copy, of which nothing is compiled yet.
	Clone() Rule

	// Uncompiled returns the rule itself if nothing is compiled of it yet, else a copy.
	Uncompiled() Rule

	// Faults returns the mistakes of the rule.
	Faults() []Fault

	// Get returns what a field holds, as documents write it.
	Get(path string) document.Value

	// Set reads a field from a document and returns what is wrong with the value.
	Set(path string, value document.Value) (fault string)

	// SetFormer reads a field of older documents, after all others were read.
	SetFormer(path string, value document.Value) (fault string)

	// Reset makes a field as if it had been left out.
	Reset(path string)

	// SameField says whether a field is the same in another rule of the kind.
	SameField(path string, other Rule) bool

	// NewLimiter returns a limiter for the rule, which is valid and complete.
	NewLimiter(Env) Limiter

	// Adopt returns a limiter that goes on from one of another version of the rule; nil if
	// the kind has to start anew. See [Spec.Adopt].
	Adopt(present Limiter, env Env) Limiter
}

// typedRule is a rule with its type. What is asked most often of the ten thousand that may come into force at
// once is in its first 64 bytes, with the name and the resource, as which rules begin.
type typedRule[R comparable] struct {
	of       *Type[R]
	compiled atomic.Value // what the kind compiles of it, see compile
	traits
	rule R
}

// traits are what is known of a rule, so that it need not be asked for again. The zero value knows nothing.
type traits struct {
	complete  bool // what was left out is filled in
	learned   bool // the rest of the traits is known
	plain     bool // the target has a name and a resource, and nothing else
	keyless   bool // it looks at no attributes
	noSignals bool // it reads none, hints included
	fleet     bool
	demotes   bool
	counts    bool // not all calls
}

// learn finds the traits of a rule that is complete and will not change any more.
func (r *typedRule[R]) learn() {
	c := r.of.spec.Common(&r.rule)
	r.traits = traits{
		complete:  true,
		plain:     c.isPlain(),
		keyless:   len(r.Attributes()) == 0,
		noSignals: len(r.Signals())+len(r.Hints()) == 0,
		fleet:     r.Fleet(), demotes: r.Demotes(), counts: r.Counts() != "",
	}
	r.learned = true
}

// edit returns the rule to be changed, of which nothing is known any more then.
func (r *typedRule[R]) edit() *R {
	r.traits = traits{}
	return &r.rule
}

func (r *typedRule[R]) Type() Definition { return r.of }

func (r *typedRule[R]) Key() Key { return Key{r.of.spec.Kind, *r.of.spec.Common(&r.rule).Name} }

func (r *typedRule[R]) Target() Target {
	c := r.of.spec.Common(&r.rule)
	if r.plain {
		return Target{Name: *c.Name, Resource: *c.Resource}
	}
	return c.target()
}

func (r *typedRule[R]) Attributes() []string {
	if r.keyless || r.of.spec.Attributes == nil {
		return nil
	}
	return r.of.spec.Attributes(&r.rule)
}

func (r *typedRule[R]) Lists() []string {
	if r.of.spec.Lists == nil {
		return nil
	}
	return r.of.spec.Lists(&r.rule)
}

func (r *typedRule[R]) NamesValues() bool {
	return r.of.spec.NamesValues != nil && r.of.spec.NamesValues(&r.rule)
}

func (r *typedRule[R]) Signals() []Signal {
	if r.noSignals || r.of.spec.Signals == nil {
		return nil
	}
	return r.of.spec.Signals(&r.rule)
}

func (r *typedRule[R]) Hints() []Signal {
	if r.noSignals || r.of.spec.Hints == nil {
		return nil
	}
	return r.of.spec.Hints(&r.rule)
}

func (r *typedRule[R]) Fleet() bool {
	if r.learned {
		return r.fleet
	}
	return r.of.spec.Fleet != nil && r.of.spec.Fleet(&r.rule)
}

func (r *typedRule[R]) Places() bool {
	return r.of.spec.Places != nil && r.Fleet() && r.of.spec.Places(&r.rule)
}

func (r *typedRule[R]) Demotes() bool {
	if r.learned {
		return r.demotes
	}
	return r.of.spec.Demotes != nil && r.of.spec.Demotes(&r.rule)
}

func (r *typedRule[R]) Counts() Counts {
	if r.of.spec.Counts == nil || r.learned && !r.counts {
		return ""
	}
	if counts := r.of.spec.Counts(&r.rule); counts != CountsCalls {
		return counts
	}
	return ""
}

func (r *typedRule[R]) Phase() Phase {
	if r.Demotes() {
		return phaseDemotion
	}
	return r.of.spec.Phase
}

func (r *typedRule[R]) Answer() Answer {
	if r.of.spec.Answer == nil {
		return Answer{}
	}
	return r.of.spec.Answer(&r.rule)
}

func (r *typedRule[R]) Forbids() Answer {
	if r.of.spec.Forbids == nil {
		return Answer{}
	}
	return r.of.spec.Forbids(&r.rule)
}

func (r *typedRule[R]) Ends() time.Time {
	if r.of.spec.Ends == nil {
		return time.Time{}
	}
	return r.of.spec.Ends(&r.rule)
}

func (r *typedRule[R]) Value() any { return r.rule }

func (r *typedRule[R]) Equal(other Rule) bool {
	same, ok := other.(*typedRule[R])
	return ok && (same.of == r.of || same.of.spec.Kind == r.of.spec.Kind) && same.rule == r.rule
}

func (r *typedRule[R]) WithDefaults() Rule { return r.of.complete(&r.rule) }

func (r *typedRule[R]) Clone() Rule {
	return &typedRule[R]{of: r.of, rule: r.rule, traits: r.traits}
}

func (r *typedRule[R]) Uncompiled() Rule {
	if r.compiled.Load() == nil {
		return r
	}
	return r.Clone()
}

func (r *typedRule[R]) Faults() []Fault {
	complete := r
	if !r.complete {
		complete = r.of.complete(&r.rule)
	}
	return r.of.faults(&r.rule, &complete.rule)
}

func (r *typedRule[R]) Get(path string) document.Value { return r.of.field(path).write(&r.rule) }

func (r *typedRule[R]) Set(path string, value document.Value) (fault string) {
	return r.of.field(path).read(r.edit(), value)
}

func (r *typedRule[R]) SetFormer(path string, value document.Value) (fault string) {
	for _, f := range r.of.spec.Former {
		if f.Path == path {
			return f.Read(r.edit(), value)
		}
	}
	return ""
}

func (r *typedRule[R]) Reset(path string) { r.of.field(path).reset(r.edit()) }

func (r *typedRule[R]) SameField(path string, other Rule) bool {
	same, ok := other.(*typedRule[R])
	return ok && r.of.field(path).equal(&r.rule, &same.rule)
}

// compile returns what the kind compiles of the rule, once for all of its limiters.
func (r *typedRule[R]) compile(version uint64) any {
	if r.of.spec.Compile == nil {
		return nil
	}
	if compiled := r.compiled.Load(); compiled != nil {
		return compiled
	}
	r.compiled.CompareAndSwap(nil, r.of.spec.Compile(&r.rule, version)) // unless another goroutine was quicker
	return r.compiled.Load()
}

func (r *typedRule[R]) NewLimiter(env Env) Limiter {
	env.Compiled = r.compile(env.Version)
	return r.of.spec.New(&r.rule, env)
}

func (r *typedRule[R]) Adopt(present Limiter, env Env) Limiter {
	if r.of.spec.Adopt == nil {
		return nil
	}
	env.Compiled = r.compile(env.Version)
	return r.of.spec.Adopt(present, &r.rule, env)
}
