package core

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// tally counts what a rule did to the calls of a resource.
type tally struct {
	refused     stat.Refusals
	wouldRefuse atomic.Uint64
	demoted     atomic.Uint64 // calls, or that would have been if the rule were no shadow
}

func newTally(of *stat.Node) *tally { return &tally{refused: of.Refusals()} }

// refusal is one error of a rule, which all calls with that RetryAfter share. For a shadow
// rule it also has the extras of the guards that return the error from WouldBlock. It never
// changes.
type refusal struct {
	err    BlockError
	extras guardExtras
	above  time.Duration // it is for retry times above this, up to that of the error
}

// refusals holds the errors of one rule on one resource: one for each rounded RetryAfter,
// so that refusing allocates nothing once that error was made.
type refusals struct {
	resource string
	key      rule.Key
	reason   rule.Reason
	demotees bool     // of calls that another rule had demoted
	answers  *answers // nil unless the rule has answers of its own

	tally  *tally
	latest atomic.Pointer[refusal]      // nil until the first; most calls need the same again
	made   atomic.Pointer[madeRefusals] // nil until the first
	denial atomic.Pointer[refusal]      // of calls that are forbidden; nil until the first

	recorded recorder.Place // of the rule

	demoted atomic.Pointer[refusals] // of calls that another rule had demoted; nil until the first
}

// ofDemoted returns the refusals of calls that another rule had demoted before.
func (r *refusals) ofDemoted() *refusals {
	if r.demoted.Load() == nil {
		made := &refusals{resource: r.resource, key: r.key, reason: r.reason, answers: r.answers, tally: r.tally, demotees: true}
		r.demoted.CompareAndSwap(nil, made) // unless another goroutine was quicker
	}
	return r.demoted.Load()
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

// madeRefusals is a cache of errors, by a hash of their RetryAfter.
type madeRefusals [1 << cacheBits]atomic.Pointer[refusal]

// newRefusals returns the refusals of a version of a rule on a resource, counted in a tally
// that all versions share.
func newRefusals(resource string, of rule.Rule, counted *tally) *refusals {
	return &refusals{resource: resource, key: of.Key(), reason: of.Type().Reason(), answers: answersOf(of), tally: counted}
}

// wouldRefuse counts a call that a shadow rule let through and returns how it
// would have been refused.
func (r *refusals) wouldRefuse(retryAfter time.Duration) *refusal {
	r.tally.wouldRefuse.Add(1)
	return r.refusalOf(retryAfter)
}

// refusalOf returns the refusal for a retry time, which it rounds up.
func (r *refusals) refusalOf(retryAfter time.Duration) *refusal {
	if retryAfter == rule.Forbidden {
		return r.forbidden()
	}
	if latest := r.latest.Load(); latest != nil && latest.above < retryAfter && retryAfter <= latest.err.RetryAfter {
		return latest
	}
	found := r.find(retryAfter)
	r.latest.Store(found)
	return found
}

// forbidden returns the refusal of calls that may not be made.
func (r *refusals) forbidden() *refusal {
	if present := r.denial.Load(); present != nil {
		return present
	}
	made := &refusal{err: BlockError{
		Resource: r.resource, Kind: r.key.Kind, Rule: r.key.Name, Reason: rule.Denied, Answer: r.answers.orNone().forbidden,
		Demoted: r.demotees,
	}}
	made.extras.wouldBlock = &made.err
	if !r.denial.CompareAndSwap(nil, made) { // another goroutine was quicker
		return r.denial.Load()
	}
	return made
}

// find returns the refusal from the cache, or makes it.
func (r *refusals) find(retryAfter time.Duration) *refusal {
	retryAfter, unit := roundUp(retryAfter)
	made := r.made.Load()
	if made == nil {
		made = new(madeRefusals)
		r.made.Store(made) // perhaps in place of another goroutine's, with one or two
	}
	slot := &made[uint64(retryAfter)*golden>>(64-cacheBits)]
	if present := slot.Load(); present != nil && present.err.RetryAfter == retryAfter {
		return present
	}
	next := &refusal{above: retryAfter - unit, err: BlockError{
		Resource: r.resource, Kind: r.key.Kind, Rule: r.key.Name, Reason: r.reason, Answer: r.answers.orNone().refused, RetryAfter: retryAfter,
		Demoted: r.demotees,
	}}
	next.extras.wouldBlock = &next.err
	slot.Store(next)
	return next
}

// maxRounding bounds what is added to a retry time, so that it is about right by days, too.
const maxRounding = 100 * time.Second

// roundUp rounds a duration up to two significant digits, but by less than maxRounding, as windows of the
// calendar last for long and end to the second: to a multiple of the unit that it returns, at least a
// millisecond. 0 and [Never] stay what they are.
func roundUp(d time.Duration) (rounded, unit time.Duration) {
	switch {
	case d <= 0:
		return 0, 1
	case d > Never/2: // no call waits for more than a hundred years
		return Never, Never / 2
	}
	unit = time.Millisecond
	for unit*100 < d && unit < maxRounding {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit, unit
}
