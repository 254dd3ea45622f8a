package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// sleepers are the goroutines that wait for an engine: calls that rules make wait, and those of the engine
// itself. Each waits for a channel of its own, which it has made, and for no channel of the engine: within
// testing/synctest, time passes only while all goroutines wait for what was made there, and the engine
// may have been made outside, or in another test.
type sleepers struct {
	// version grows when all are woken: what the rules said before may be different now.
	version atomic.Uint64

	shards [sleeperShards]struct {
		mu    sync.Mutex
		first *sleeper

		_ [48]byte // the rest of a cache line
	}
}

const sleeperShards = 16

// sleeper is a goroutine that waits, or that is about to.
type sleeper struct {
	woken chan struct{} // receives when it is woken

	shard        int // while it is among the sleepers; the mutex of the shard guards the rest
	before, next *sleeper
}

// newSleeper is to be called by the goroutine that is going to wait.
func newSleeper() *sleeper { return &sleeper{woken: make(chan struct{}, 1)} }

// wake wakes the goroutine, now or when it is going to wait.
func (s *sleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it has been woken already
	}
}

func (l *sleepers) add(s *sleeper, now clock.Instant) {
	s.shard = int(uint64(now) % sleeperShards)
	in := &l.shards[s.shard]
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.before, s.next = nil, in.first; s.next != nil {
		s.next.before = s
	}
	in.first = s
}

func (l *sleepers) remove(s *sleeper) {
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

// wakeAll wakes all that wait, and all that have not looked at the rules since.
func (l *sleepers) wakeAll() {
	l.version.Add(1)
	for i := range l.shards {
		in := &l.shards[i]
		in.mu.Lock()
		for s := in.first; s != nil; s = s.next {
			s.wake()
		}
		in.mu.Unlock()
	}
}

// pause waits until the sleeper is woken, until d has passed since now, unless d is 0, or until the context
// or the engine ends: then it returns that error. It does not wait if all were woken since the version was
// the given one.
func (e *callEnv) pause(ctx context.Context, now clock.Instant, d time.Duration, s *sleeper, version uint64) error {
	var over <-chan time.Time
	if d > 0 {
		timer := clock.TimerAt(e.clock, now.Add(d))
		defer timer.Stop()
		over = timer.C()
	}
	e.sleepers.add(s, now)
	defer e.sleepers.remove(s)
	if e.sleepers.version.Load() == version && !e.isClosed() {
		select {
		case <-s.woken:
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if e.isClosed() {
		return ErrClosed
	}
	return nil
}

// sleepUntil waits until an instant, or until the context or the engine ends: then it returns that error.
func (e *callEnv) sleepUntil(ctx context.Context, at clock.Instant, s *sleeper) error {
	for {
		version, now := e.sleepers.version.Load(), e.clock.Now()
		switch {
		case e.isClosed():
			return ErrClosed
		case now >= at:
			return ctx.Err()
		}
		if err := e.pause(ctx, now, at.Sub(now), s, version); err != nil {
			return err
		}
	}
}

// goroutines are those of an engine. Unlike a [sync.WaitGroup] they may be started outside and inside of
// testing/synctest bubbles in turn.
type goroutines struct {
	mu    sync.Mutex
	ended map[*sync.WaitGroup]struct{} // of each
}

// Go starts a goroutine.
func (g *goroutines) Go(do func()) {
	ended := new(sync.WaitGroup)
	g.mu.Lock()
	if g.ended == nil {
		g.ended = make(map[*sync.WaitGroup]struct{})
	}
	g.ended[ended] = struct{}{}
	g.mu.Unlock()
	ended.Add(1)
	go func() {
		defer func() {
			ended.Done()
			g.forget(ended)
		}()
		do()
	}()
}

func (g *goroutines) forget(ended *sync.WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ended, ended)
}

// any returns one of the goroutines; nil if there is none.
func (g *goroutines) any() *sync.WaitGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ended := range g.ended {
		return ended
	}
	return nil
}

// Wait returns when none runs any more.
func (g *goroutines) Wait() {
	for ended := g.any(); ended != nil; ended = g.any() {
		ended.Wait()
		g.forget(ended)
	}
}
