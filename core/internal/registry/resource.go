package registry

import (
	"hash/fnv"
	"io"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/load"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/splitmix"
)

// Resource is one name that was called or that a rule names. It leads to what calls need of their engine, an E.
type Resource[E any] struct {
	names.Entry // what is gone is counted among the forgotten
	*Stats
	Env  *E
	Plan atomic.Pointer[inforce.Plan] // never nil; the latest one

	patterns *inforce.Patterns // of a name in the overflow: where its rules come from
	Recorded recorder.Place
	Load     atomic.Pointer[load.Meter] // nil until a guard is asked for the load

	// Registry.SwapMu guards what follows, once others can find the resource.
	attached   *attachments     // nil while no rule in force names it
	States     []*inforce.State // of the rules in force, by kind and name
	AffectedIn uint64           // the generation in which its plan last changed
}

// Stats is what is counted of the calls of a resource. It is 448 bytes, so that the
// runtime aligns it to a cache line, as its node needs.
type Stats struct {
	Node        leap.Node
	LoggedUntil atomic.Int64 // the end of the second in which a refusal was last logged; 0 before the first

	numbers atomic.Uint64 // how many calls were given a number, from that of the resource on: see DrawNumber
}

// attachments are the rules in force that name a resource. Such a resource is never
// forgotten.
type attachments struct {
	guards []*inforce.Rule  // rules on the resource
	counts []*inforce.Rule  // rules on others that count its passes, in no order
	first  [1]*inforce.Rule // has the guards of most resources, which are one
}

func newAttachments() *attachments {
	a := new(attachments)
	a.guards = a.first[:0]
	return a
}

// DrawNumber draws a number for a call, see [rule.Call.Number]. It is that of a place in the
// sequence of the SplitMix64 generator, so that simulations can be repeated.
func (s *Stats) DrawNumber() uint32 {
	return max(1, uint32(splitmix.Mix(s.numbers.Add(1)*splitmix.Increment)>>37))
}

// firstNumber returns where the sequence of a resource begins, so that those of resources
// that share a limiter differ.
func firstNumber(name string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name) // never fails
	return hash.Sum64()
}

// isIdle says whether nothing is lost when the resource is forgotten and its name comes
// again. The caller holds Registry.SwapMu.
func (r *Resource[E]) isIdle(now clock.Instant) bool {
	return r.Node.Idle(now) && !slices.ContainsFunc(r.States, func(s *inforce.State) bool { return s.Own != nil && !s.Own.Limiter.Idle(now) })
}

// NoteMatched takes note of the rules that calls of the resource have matched.
func (r *Resource[E]) NoteMatched() {
	p := r.Plan.Load()
	if len(p.Rules) == 0 {
		return
	}
	calls := r.Node.Calls()
	if calls == 0 {
		return
	}
	for i := range p.Rules {
		state := p.Rules[i].State
		state.Rule.Called.Store(true)
		if calls > state.Before {
			state.Rule.Matched.Store(true)
		}
	}
}

// Guards returns the rules in force that name the resource as the one that they guard, in no order. The caller
// holds Registry.SwapMu.
func (r *Resource[E]) Guards() []*inforce.Rule {
	if r.attached == nil {
		return nil
	}
	return r.attached.guards
}

// Counters returns the rules on other resources that count the passes of this one, in no order. The caller holds
// Registry.SwapMu.
func (r *Resource[E]) Counters() []*inforce.Rule {
	if r.attached == nil {
		return nil
	}
	return r.attached.counts
}
