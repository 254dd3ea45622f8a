package core

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

const cacheBits = 4

// tally counts what a rule did to the calls of a resource.
type tally struct {
	refused     *atomic.Uint64 // beside the calls that were blocked
	wouldRefuse atomic.Uint64
}

func newTally(of *stat.Node) *tally { return &tally{refused: of.Counter()} }

// refusal is an error with which a rule refuses, and what the guard of a call says
// that a shadow rule would have refused with it. It never changes.
type refusal struct {
	err    BlockError
	extras guardExtras
	above  time.Duration // it is for lengths of RetryAfter from here, exclusive, to that of the error
}

// refusals holds those of one rule on one resource: one for each length of
// RetryAfter, so that refusing allocates nothing once one of that length was made.
type refusals struct {
	resource string
	key      rule.Key
	reason   rule.Reason
	answer   rule.Answer

	tally  *tally
	latest atomic.Pointer[refusal]      // nil until the first; most calls need the same again
	made   atomic.Pointer[madeRefusals] // nil until the first
}

// madeRefusals are found by a hash of their RetryAfter.
type madeRefusals [1 << cacheBits]atomic.Pointer[refusal]

// newRefusals returns those of a version of a rule on a resource, to be counted there.
func newRefusals(resource string, of rule.Rule, counted *tally) *refusals {
	return &refusals{resource: resource, key: of.Key(), reason: of.Type().Reason(), answer: of.Answer(), tally: counted}
}

// refuse counts one refusal and returns its error.
func (r *refusals) refuse(retryAfter time.Duration) *BlockError {
	r.tally.refused.Add(1)
	return &r.refusalOf(retryAfter).err
}

// wouldRefuse counts a call that a shadow rule let through and returns how it
// would have been refused.
func (r *refusals) wouldRefuse(retryAfter time.Duration) *refusal {
	r.tally.wouldRefuse.Add(1)
	return r.refusalOf(retryAfter)
}

// refusalOf returns the refusal for a length of RetryAfter.
func (r *refusals) refusalOf(retryAfter time.Duration) *refusal {
	if latest := r.latest.Load(); latest != nil && latest.above < retryAfter && retryAfter <= latest.err.RetryAfter {
		return latest
	}
	found := r.find(retryAfter)
	r.latest.Store(found)
	return found
}

// find finds a refusal among those made, or makes it.
func (r *refusals) find(retryAfter time.Duration) *refusal {
	retryAfter, unit := roundUp(retryAfter)
	made := r.made.Load()
	if made == nil {
		made = new(madeRefusals)
		r.made.Store(made) // perhaps in place of another goroutine's, with one or two
	}
	const golden = 0x9E3779B97F4A7C15 // spreads the lengths over the cache
	slot := &made[uint64(retryAfter)*golden>>(64-cacheBits)]
	if present := slot.Load(); present != nil && present.err.RetryAfter == retryAfter {
		return present
	}
	next := &refusal{above: retryAfter - unit, err: BlockError{
		Resource: r.resource, Kind: r.key.Kind, Rule: r.key.Name, Reason: r.reason, Answer: r.answer, RetryAfter: retryAfter,
	}}
	next.extras.wouldBlock = &next.err
	slot.Store(next)
	return next
}

// roundUp rounds a duration up to two significant digits and at least a millisecond: to
// a multiple of the unit that it returns. 0 and [Never] stay what they are.
func roundUp(d time.Duration) (rounded, unit time.Duration) {
	switch {
	case d <= 0:
		return 0, 1
	case d > Never/2: // no call waits for more than a hundred years
		return Never, Never / 2
	}
	unit = time.Millisecond
	for unit*100 < d {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit, unit
}
