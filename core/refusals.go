package core

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/rules"
)

const cacheBits = 4

// tally counts what a rule did to the calls of a resource.
type tally struct {
	refused, wouldRefuse atomic.Uint64
}

// refusals holds the errors with which one rule refuses on one resource: one for
// each length of RetryAfter, so that refusing allocates nothing once an error of
// that length was made.
type refusals struct {
	resource string
	kind     rules.Kind
	rule     string

	tally  *tally
	errors [1 << cacheBits]atomic.Pointer[BlockError] // by a hash of RetryAfter
}

// about says what the refusals are of and where they are counted.
func (r *refusals) about(resource string, kind rules.Kind, rule string, counted *tally) {
	r.resource, r.kind, r.rule, r.tally = resource, kind, rule, counted
}

// refuse counts one refusal and returns its error.
func (r *refusals) refuse(retryAfter time.Duration) *BlockError {
	r.tally.refused.Add(1)
	return r.errorOf(retryAfter)
}

// wouldRefuse counts a call that a shadow rule let through and returns the error
// with which it would have refused.
func (r *refusals) wouldRefuse(retryAfter time.Duration) *BlockError {
	r.tally.wouldRefuse.Add(1)
	return r.errorOf(retryAfter)
}

func (r *refusals) errorOf(retryAfter time.Duration) *BlockError {
	retryAfter = roundUp(retryAfter)
	const golden = 0x9E3779B97F4A7C15 // spreads the lengths over the cache
	slot := &r.errors[uint64(retryAfter)*golden>>(64-cacheBits)]
	if err := slot.Load(); err != nil && err.RetryAfter == retryAfter {
		return err
	}
	err := &BlockError{Resource: r.resource, Kind: r.kind, Rule: r.rule, RetryAfter: retryAfter}
	slot.Store(err)
	return err
}

// roundUp rounds a duration up to two significant digits and at least a
// millisecond. 0 stays 0.
func roundUp(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	unit := time.Millisecond
	for unit*100 < d {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}
