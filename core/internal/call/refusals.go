package call

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// Tally counts what a rule did to the calls of a resource.
type Tally struct {
	Refused     leap.Refusals
	WouldRefuse atomic.Uint64
	Demoted     atomic.Uint64 // calls, or that would have been if the rule were no shadow
	promised    atomic.Int64  // tokens that calls will take which wait for other rules
}

// NewTalliedRefusals returns the refusals of the first version of a rule on a resource, with a tally of their own that is
// counted in a node. Both are one object, since every resource with a rule has them.
func NewTalliedRefusals(of *leap.Node, resource string, key *rule.Key, version rule.Rule) *Refusals {
	made := new(struct {
		refusals Refusals
		tally    Tally
	})
	made.tally.Refused = of.Refusals()
	made.refusals.init(resource, key, version, &made.tally)
	return &made.refusals
}

// Blocked says of a refused call what core.BlockError does, which has the same fields.
type Blocked struct {
	Resource   string
	Kind       rule.Kind
	Rule       string
	Reason     rule.Reason
	Answer     rule.Answer
	RetryAfter time.Duration
	Demoted    bool
}

// Refusal is one error of a rule, which all calls with that RetryAfter share. For a shadow
// rule it also has the extras of the guards that return the error from WouldBlock. It never
// changes.
type Refusal struct {
	Err    Blocked
	Extras Extras
	above  time.Duration // it is for retry times above this, up to that of the error
}

// Refusals holds the errors of one rule on one resource: one for each rounded RetryAfter,
// so that refusing allocates nothing once that error was made.
type Refusals struct {
	Resource string
	Key      *rule.Key // of the rule, which never changes
	reason   rule.Reason
	demotees bool     // of calls that another rule had demoted
	answers  *answers // nil unless the rule has answers of its own

	Tally  *Tally
	latest atomic.Pointer[Refusal]      // nil until the first; most calls need the same again
	made   atomic.Pointer[madeRefusals] // nil until the first

	recorded recorder.Place // of the rule
}

// Named returns the rule as recorders know it; the zero value for none.
func (r *Refusals) Named() recorder.Rule {
	if r == nil {
		return recorder.Rule{}
	}
	return recorder.Rule{Place: &r.recorded, Key: r.Key}
}

// OfDemoted returns the refusals of calls that another rule had demoted before.
func (r *Refusals) OfDemoted() *Refusals {
	demoted := &r.ensureMade().demoted
	if demoted.Load() == nil {
		made := &Refusals{Resource: r.Resource, Key: r.Key, reason: r.reason, answers: r.answers, Tally: r.Tally, demotees: true}
		demoted.CompareAndSwap(nil, made) // unless another goroutine was quicker
	}
	return demoted.Load()
}

// answers are what a rule answers to calls that it refuses, and to those that are forbidden.
type answers struct{ refused, forbidden rule.Answer }

// answersOf returns the answers of a rule; nil if it leaves them to adapters.
func answersOf(r rule.Rule) *answers {
	if r.Answer() == (rule.Answer{}) && r.Forbids() == (rule.Answer{}) {
		return nil
	}
	return &answers{r.Answer(), r.Forbids()}
}

// orNone returns the answers, those of a rule without any are the zero values.
func (a *answers) orNone() answers {
	if a == nil {
		return answers{}
	}
	return *a
}

const (
	cacheBits = 4
	golden    = splitmix.Increment // an odd number without a pattern
)

// madeRefusals are those that were made: few rules refuse calls.
type madeRefusals struct {
	byRetry [1 << cacheBits]atomic.Pointer[Refusal] // a cache, by a hash of the RetryAfter
	denial  atomic.Pointer[Refusal]                 // of calls that are forbidden; nil until the first
	demoted atomic.Pointer[Refusals]                // of calls that another rule had demoted; nil until the first
}

// ensureMade returns those that were made.
func (r *Refusals) ensureMade() *madeRefusals {
	if r.made.Load() == nil {
		r.made.CompareAndSwap(nil, new(madeRefusals)) // unless another goroutine was quicker
	}
	return r.made.Load()
}

// NewRefusals returns the refusals of a version of a rule on a resource, counted in a tally
// that all versions share.
func NewRefusals(resource string, key *rule.Key, of rule.Rule, counted *Tally) *Refusals {
	r := new(Refusals)
	r.init(resource, key, of, counted)
	return r
}

func (r *Refusals) init(resource string, key *rule.Key, of rule.Rule, counted *Tally) {
	r.Resource, r.Key, r.reason, r.answers, r.Tally = resource, key, of.Type().Reason(), answersOf(of), counted
}

// AreOf says whether calls that a version of the rule refuses get the same answers.
func (r *Refusals) AreOf(version rule.Rule) bool {
	answer, forbids := version.Answer(), version.Forbids()
	return r.answers.orNone() == answers{answer, forbids}
}

// wouldRefuse counts a call that a shadow rule let through and returns how it
// would have been refused.
func (r *Refusals) wouldRefuse(retryAfter time.Duration) *Refusal {
	r.Tally.WouldRefuse.Add(1)
	return r.RefusalOf(retryAfter)
}

// RefusalOf returns the refusal for a retry time, which it rounds up.
func (r *Refusals) RefusalOf(retryAfter time.Duration) *Refusal {
	if retryAfter == rule.Forbidden {
		return r.forbidden()
	}
	if latest := r.latest.Load(); latest != nil && latest.above < retryAfter && retryAfter <= latest.Err.RetryAfter {
		return latest
	}
	found := r.find(retryAfter)
	r.latest.Store(found)
	return found
}

// forbidden returns the refusal of calls that may not be made.
func (r *Refusals) forbidden() *Refusal {
	denial := &r.ensureMade().denial
	if present := denial.Load(); present != nil {
		return present
	}
	made := &Refusal{Err: Blocked{
		Resource: r.Resource, Kind: r.Key.Kind, Rule: r.Key.Name, Reason: rule.Denied, Answer: r.answers.orNone().forbidden,
		Demoted: r.demotees,
	}}
	made.Extras.WouldBlock = &made.Err
	if !denial.CompareAndSwap(nil, made) { // another goroutine was quicker
		return denial.Load()
	}
	return made
}

// find returns the refusal from the cache, or makes it.
func (r *Refusals) find(retryAfter time.Duration) *Refusal {
	retryAfter, unit := roundUp(retryAfter)
	slot := &r.ensureMade().byRetry[uint64(retryAfter)*golden>>(64-cacheBits)]
	if present := slot.Load(); present != nil && present.Err.RetryAfter == retryAfter {
		return present
	}
	next := &Refusal{above: retryAfter - unit, Err: Blocked{
		Resource: r.Resource, Kind: r.Key.Kind, Rule: r.Key.Name, Reason: r.reason, Answer: r.answers.orNone().refused, RetryAfter: retryAfter,
		Demoted: r.demotees,
	}}
	next.Extras.WouldBlock = &next.Err
	slot.Store(next)
	return next
}

// maxRounding bounds what is added to a retry time, so that it is about right by days, too.
const maxRounding = 100 * time.Second

// roundUp rounds a duration up to two significant digits, but by less than maxRounding, as windows of the
// calendar last for long and end to the second: to a multiple of the unit that it returns, at least a
// millisecond. 0 and [rule.Never] stay what they are.
func roundUp(d time.Duration) (rounded, unit time.Duration) {
	switch {
	case d <= 0:
		return 0, 1
	case d > rule.Never/2: // no call waits for more than a hundred years
		return rule.Never, rule.Never / 2
	}
	unit = time.Millisecond
	for unit*100 < d && unit < maxRounding {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit, unit
}
