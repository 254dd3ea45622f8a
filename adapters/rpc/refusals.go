package rpc

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// refusalSlots is how many converted refusals are kept.
const refusalSlots = 1024

// Refusals keeps what an adapter makes of refusals, such as the errors that callers get. The
// engine returns the same [core.BlockError] for calls that are refused alike, so that
// converting one again costs a look-up. It keeps about a thousand; others are converted
// anew. Make it with [NewRefusals]. It is safe for concurrent use.
type Refusals[T any] struct {
	convert func(block *core.BlockError) T
	seed    maphash.Seed
	slots   atomic.Pointer[[refusalSlots]atomic.Pointer[converted[T]]] // nil until the first refusal
}

// converted is what was made of a refusal. It keeps the refusal, so that no other has its
// address.
type converted[T any] struct {
	block *core.BlockError
	value T
}

// NewRefusals returns what keeps the results of convert, which must be safe for concurrent
// use. Callers share its results.
func NewRefusals[T any](convert func(block *core.BlockError) T) *Refusals[T] {
	return &Refusals[T]{convert: convert, seed: maphash.MakeSeed()}
}

// Of returns the converted refusal.
func (r *Refusals[T]) Of(block *core.BlockError) T {
	slots := r.slots.Load()
	if slots == nil {
		slots = new([refusalSlots]atomic.Pointer[converted[T]])
		r.slots.Store(slots) // perhaps in place of another goroutine's, with one or two
	}
	slot := &slots[maphash.Comparable(r.seed, block)%refusalSlots]
	if present := slot.Load(); present != nil && present.block == block {
		return present.value
	}
	made := &converted[T]{block, r.convert(block)}
	if len(block.Resource) <= rule.MaxNameLength { // names that clients choose may be longer
		slot.Store(made)
	}
	return made.value
}
