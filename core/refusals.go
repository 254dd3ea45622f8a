package core

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/rules"
)

const cacheBits = 4

// refusals counts what one rule refuses on one resource, and holds the errors
// that it refuses with: one for each length of RetryAfter, so that refusing
// allocates nothing once an error of that length was made.
type refusals struct {
	resource string
	kind     rules.Kind
	rule     string

	count  atomic.Uint64
	errors [1 << cacheBits]atomic.Pointer[BlockError] // by a hash of RetryAfter
}

// about says what the refusals are of.
func (r *refusals) about(resource string, kind rules.Kind, rule string) {
	r.resource, r.kind, r.rule = resource, kind, rule
}

// refuse counts one refusal and returns its error.
func (r *refusals) refuse(retryAfter time.Duration) *BlockError {
	r.count.Add(1)
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
