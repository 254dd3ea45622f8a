package outgoing

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// maxNameLength is how long the name of a target may be, in bytes.
	maxNameLength = 512

	// sweepInterval is how often idle targets are looked for.
	sweepInterval = time.Second
)

// table has the state of each target, for a bounded number of targets. Looking up a known
// one takes no lock and allocates nothing.
type table[T any] struct {
	most   int
	create func(name string, now clock.Instant) *T
	isIdle func(of *T, now clock.Instant) bool

	known     atomic.Pointer[map[string]*T] // immutable
	untracked atomic.Uint64                 // look-ups that found no place

	mu    sync.Mutex
	swept clock.Instant // guarded by mu
}

// find returns the state of a target, nil if it has none.
func (t *table[T]) find(name string) *T { return t.all()[name] }

// at returns the state of a target; nil if there is no place for another one.
func (t *table[T]) at(name string, now clock.Instant) *T {
	if of := t.find(name); of != nil {
		return of
	}
	of := t.add(name, now)
	if of == nil {
		t.untracked.Add(1)
	}
	return of
}

func (t *table[T]) add(name string, now clock.Instant) *T {
	if len(name) > maxNameLength {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all()
	if of := all[name]; of != nil { // another goroutine was quicker
		return of
	}
	if len(all) >= t.most {
		if t.swept != 0 && now.Sub(t.swept) < sweepInterval {
			return nil
		}
		t.swept = now
	}
	all = maps.Clone(all)
	if len(all) >= t.most {
		maps.DeleteFunc(all, func(_ string, of *T) bool { return t.isIdle(of, now) })
	}
	var of *T
	if len(all) < t.most {
		if all == nil {
			all = make(map[string]*T)
		}
		name = strings.Clone(name) // it may be part of something larger
		of = t.create(name, now)
		all[name] = of
	}
	t.known.Store(&all)
	return of
}

// all returns the state of all targets. The map must not be changed.
func (t *table[T]) all() map[string]*T {
	if known := t.known.Load(); known != nil {
		return *known
	}
	return nil
}
