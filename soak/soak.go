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

// soak is the state of a soak test.
type soak struct {
	out        io.Writer
	findings   *findings
	clock      clock.Clock
	started    clock.Instant
	duration   time.Duration
	goroutines int
	seed       uint64
	dir        string

	main    *subject // with all rules, and names that are created and evicted
	crowded *subject // with more names than MaxResources
	heap    []heapSample

	loadSteps time.Duration // of random load steps in a simulation

	reloads, writes, engines, kindCalls atomic.Uint64
	overloads                           atomic.Uint64 // simulated
}

// resources is MaxResources of the main engine.
const resources = 300

func newSoak(out io.Writer, duration time.Duration, goroutines int, seed uint64) (*soak, error) {
	s := &soak{out: out, findings: &findings{out: out}, clock: clock.System(), duration: duration, goroutines: goroutines, seed: seed}
	s.loadSteps = min(loadStepsLength, max(duration, time.Minute))
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
	return s, s.openCrowded()
}

// close ends the engines.
func (s *soak) close() {
	s.main.Close()
	s.crowded.Close()
	if err := os.RemoveAll(filepath.Dir(s.dir)); err != nil {
		s.findings.add("removing documents: %v", err)
	}
}

// random returns the random numbers for one goroutine.
func (s *soak) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, stream)) //nolint:gosec // guards no secret
}

// run runs everything for the duration, in rounds. After each round no calls are made
// and all counts must agree.
func (s *soak) run(ctx context.Context) {
	defer time.AfterFunc(s.duration+2*time.Minute, func() { panic("calls hang: see where the goroutines are") }).Stop()
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var background sync.WaitGroup
	for i, task := range []func(context.Context, *rand.Rand){s.reload, s.write, s.churnEngines, s.testKinds, s.testLoadSteps} {
		background.Go(func() { task(ctx, s.random(uint64(i))) })
	}
	background.Go(func() { s.printProgress(ctx) })
	for round := uint64(1); ctx.Err() == nil; round++ {
		s.round(ctx, round)
	}
	background.Wait()
	s.checkLastVersion()
	s.checkPromises(s.clock.Now())
	s.checkTotals()
	s.checkHeap()
}

// round runs callers for a while.
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
	targets := s.targets()
	for i := range s.goroutines {
		c := &caller{s.clock, s.random(round<<32 + uint64(i)), targets, exits, s.started}
		callers.Go(func() { c.run(ctx) })
	}
	callers.Go(func() { testQueueOrder(ctx, s.main.target(queueName), s.random(round)) })
	ended := make(chan struct{})
	go func() {
		callers.Wait()
		close(exits)
		exiting.Wait()
		close(ended)
	}()
	s.checkUntil(ended)
	s.checkIdle()
	s.sampleHeap()
}

// checkUntil checks the engines until the round has ended.
func (s *soak) checkUntil(ended <-chan struct{}) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			s.checkPromises(s.clock.Now().Add(-2 * time.Second)) // calls that began later may still be under way
			s.checkRunning()
		}
	}
}
