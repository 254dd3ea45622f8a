package main

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// soak is all that happens.
type soak struct {
	out        io.Writer
	wrong      *wrong
	clock      clock.Clock
	started    clock.Instant
	duration   time.Duration
	goroutines int
	seed       uint64
	dir        string

	main  *subject // with every rule, and names that come and go
	crowd *subject // with more names than there is room for
	heap  []heapSample

	reloads, writes, lives atomic.Uint64
}

// resources is how many have room in the engine with names that come and go.
const resources = 300

func newSoak(out io.Writer, duration time.Duration, goroutines int, seed uint64) (*soak, error) {
	s := &soak{out: out, wrong: &wrong{out: out}, clock: clock.System(), duration: duration, goroutines: goroutines, seed: seed}
	parent, err := os.MkdirTemp("", "penstock-soak")
	if err != nil {
		return nil, err
	}
	s.dir = filepath.Join(parent, "rules")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.replace("followed.yaml", document(0)); err != nil {
		return nil, err
	}
	s.started = s.clock.Now()
	if err := s.openMain(); err != nil {
		return nil, err
	}
	return s, s.openCrowd()
}

// close ends the engines.
func (s *soak) close() {
	s.main.Close()
	s.crowd.Close()
	if err := os.RemoveAll(filepath.Dir(s.dir)); err != nil {
		s.wrong.add("removing documents: %v", err)
	}
}

// random returns the numbers of one goroutine.
func (s *soak) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, stream)) //nolint:gosec // guards no secret
}

// run lets everything happen for as long as it is to last: in rounds, after each
// of which all is at rest and must add up.
func (s *soak) run(ctx context.Context) {
	defer time.AfterFunc(s.duration+2*time.Minute, func() { panic("calls hang: see where the goroutines are") }).Stop()
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var besides sync.WaitGroup
	for i, happens := range []func(context.Context, *rand.Rand){s.reload, s.write, s.live} {
		besides.Go(func() { happens(ctx, s.random(uint64(i))) })
	}
	besides.Go(func() { s.tell(ctx) })
	for round := uint64(1); ctx.Err() == nil; round++ {
		s.round(ctx, round)
	}
	besides.Wait()
	s.settled()
	s.judge(s.clock.Now())
	s.judgeTotals()
	s.judgeHeap()
}

// round has callers call for a while.
func (s *soak) round(ctx context.Context, round uint64) {
	ctx, cancel := context.WithTimeout(ctx, min(20*time.Second, s.duration/4))
	defer cancel()
	exits := make(chan *core.Guard, 100)
	var callers, exiting sync.WaitGroup
	for range 2 {
		exiting.Go(func() {
			for guard := range exits {
				guard.Exit()
			}
		})
	}
	targets := s.choice()
	for i := range s.goroutines {
		c := &caller{s.clock, s.random(round<<32 + uint64(i)), targets, exits, s.started}
		callers.Go(func() { c.run(ctx) })
	}
	callers.Go(func() { stand(ctx, s.main.of(lineName), s.random(round)) })
	ended := make(chan struct{})
	go func() {
		callers.Wait()
		close(exits)
		exiting.Wait()
		close(ended)
	}()
	s.watch(ended)
	s.judgeRest()
	s.sampleHeap()
}

// watch judges what happens until the round has ended.
func (s *soak) watch(ended <-chan struct{}) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			s.judge(s.clock.Now().Add(-2 * time.Second)) // calls that are under way may have begun then
			s.judgeNow()
		}
	}
}
