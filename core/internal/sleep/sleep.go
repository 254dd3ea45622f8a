// Package sleep is how goroutines wait for an engine, and which of them are its own: both end with it.
package sleep

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// ErrClosed is core.ErrClosed.
var ErrClosed = errors.New("penstock: engine is closed")

// Sleepers are the goroutines that wait for an engine: calls that rules make wait, and those of the engine
// itself. Each waits for a channel of its own, which it has made, and for no channel of the engine: within
// testing/synctest, time passes only while all goroutines wait for what was made there, and the engine
// may have been made outside, or in another test.
type Sleepers struct {
	clock  clock.Clock
	closed atomic.Bool

	// version grows when all are woken: what the rules said before may be different now.
	version atomic.Uint64

	shards [sleeperShards]struct {
		mu    sync.Mutex
		first *Sleeper

		_ [48]byte // the rest of a cache line
	}
}

// Init makes them ready to use.
func (l *Sleepers) Init(c clock.Clock) { l.clock = c }

// Close ends all waits, also those that begin later, with [ErrClosed].
func (l *Sleepers) Close() {
	l.closed.Store(true)
	l.WakeAll()
}

// Version returns a number that grows when all are woken.
func (l *Sleepers) Version() uint64 { return l.version.Load() }

const sleeperShards = 16

// Sleeper is a goroutine that waits, or that is about to.
type Sleeper struct {
	woken chan struct{} // receives when it is woken

	shard        int // while it is among the sleepers; the mutex of the shard guards the rest
	before, next *Sleeper
}

// New is to be called by the goroutine that is going to wait.
func New() *Sleeper { return &Sleeper{woken: make(chan struct{}, 1)} }

// Wake wakes the goroutine, now or when it is going to wait.
func (s *Sleeper) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it has been woken already
	}
}

func (l *Sleepers) add(s *Sleeper, now clock.Instant) {
	s.shard = int(uint64(now) % sleeperShards)
	in := &l.shards[s.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.before, s.next = nil, in.first; s.next != nil {
		s.next.before = s
	}
	in.first = s
}

func (l *Sleepers) remove(s *Sleeper) {
	in := &l.shards[s.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.next != nil {
		s.next.before = s.before
	}
	if s.before != nil {
		s.before.next = s.next
	} else {
		in.first = s.next
	}
}

// WakeAll wakes all that wait, and all that have not looked at the rules since.
func (l *Sleepers) WakeAll() {
	l.version.Add(1)
	for i := range l.shards {
		in := &l.shards[i]
		in.mu.Lock()
		for s := in.first; s != nil; s = s.next {
			s.Wake()
		}
		in.mu.Unlock()
	}
}

// Pause waits until the sleeper is woken, until d has passed since now, unless d is 0, or until the context
// ends or all waits do: then it returns that error. It does not wait if all were woken since the version was
// the given one.
func (l *Sleepers) Pause(ctx context.Context, now clock.Instant, d time.Duration, s *Sleeper, version uint64) error {
	var over <-chan time.Time
	if d > 0 {
		timer := clock.TimerAt(l.clock, now.Add(d))
		defer timer.Stop()
		over = timer.C()
	}
	l.add(s, now)
	defer l.remove(s)
	if l.version.Load() == version && !l.closed.Load() {
		select {
		case <-s.woken:
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if l.closed.Load() {
		return ErrClosed
	}
	return nil
}

// Until waits until an instant, or until the context ends or all waits do: then it returns that error.
func (l *Sleepers) Until(ctx context.Context, at clock.Instant) error {
	for s := New(); ; {
		version, now := l.version.Load(), l.clock.Now()
		switch {
		case l.closed.Load():
			return ErrClosed
		case now >= at:
			return ctx.Err()
		}
		if err := l.Pause(ctx, now, at.Sub(now), s, version); err != nil {
			return err
		}
	}
}
