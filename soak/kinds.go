package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// mostPlaces is the highest limit of the isolation rule.
const mostPlaces = 8

// kinds is an engine with an isolation rule and a circuit breaker on one resource, and
// counts of its calls.
type kinds struct {
	*core.Engine
	findings *findings

	underWay atomic.Int64
	passed   atomic.Uint64

	mu      sync.Mutex
	state   string // of the breaker, by the last change
	changes uint64
}

// testKinds makes calls of a resource with an isolation rule and a circuit breaker
// until ctx ends, under rules that change, and checks what the rules promise.
func (s *soak) testKinds(ctx context.Context, random *rand.Rand) {
	k := &kinds{findings: s.findings, state: breaker.Closed}
	k.Engine = core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{StateChanged: k.stateChanged},
	})
	defer k.Close()
	k.load(random)
	var callers sync.WaitGroup
	for i := range 16 {
		own := s.random(1000 + uint64(i))
		callers.Go(func() {
			for ctx.Err() == nil {
				k.call(own)
			}
		})
	}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(1+random.IntN(20)) * time.Millisecond)
		k.load(random)
	}
	callers.Wait()
	k.checkIdle()
	s.kindCalls.Add(k.passed.Load())
}

// load puts other versions of the rules in force.
func (k *kinds) load(random *rand.Rand) {
	pool := isolation.Rule{
		Name: "kinds", Resource: "kinds", Limit: 1 + random.IntN(mostPlaces),
		MaxWait: time.Duration(1+random.IntN(50)) * time.Millisecond, MaxQueue: 1 + random.IntN(20),
	}
	if random.IntN(2) == 0 {
		pool.Order = isolation.LIFO
	}
	err := k.Load(rules.Set{
		Isolation: []isolation.Rule{pool},
		Breaker: []breaker.Rule{{
			Name: "kinds", Resource: "kinds", Threshold: 0.5, MinCalls: 5 + random.IntN(10), Window: 100 * time.Millisecond,
			OpenFor: 5 * time.Millisecond, MaxOpenFor: 20 * time.Millisecond, Probes: 1 + random.IntN(3),
		}},
	})
	if err != nil {
		k.findings.add("kinds: %v", err)
	}
}

// call makes a call. It may give up waiting, fail or panic.
func (k *kinds) call(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(60))*time.Millisecond)
	defer cancel()
	err := k.run(ctx, random)
	if err == nil || errors.Is(err, errFailed) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	var block *core.BlockError
	if !errors.As(err, &block) {
		k.findings.add("kinds: an error that nobody could expect: %v", err)
	}
	time.Sleep(time.Millisecond)
}

func (k *kinds) run(ctx context.Context, random *rand.Rand) error {
	defer func() {
		if thrown := recover(); thrown != nil && thrown != errPanic { //nolint:errorlint // this very value
			panic(thrown)
		}
	}()
	return k.Do(ctx, "kinds", func(context.Context) error {
		defer k.underWay.Add(-1)
		if n := k.underWay.Add(1); n > mostPlaces {
			k.findings.add("kinds: %d calls are under way, and no more than %d may be", n, mostPlaces)
		}
		k.passed.Add(1)
		time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
		switch broken := time.Now().UnixMilli()/300%2 == 0; {
		case broken && random.IntN(10) > 0:
			return errFailed
		case random.IntN(100) == 0:
			panic(errPanic)
		}
		return nil
	})
}

// stateChanged checks that changes of state follow on each other.
func (k *kinds) stateChanged(change core.StateChange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if change.From != k.state {
		k.findings.add("kinds: the breaker was %s and changes from %s to %s", k.state, change.From, change.To)
	}
	k.state = change.To
	k.changes++
}

// checkIdle checks the rules when no call is made any more.
func (k *kinds) checkIdle() {
	for _, of := range k.Explain("kinds") {
		switch of.Kind {
		case "isolation":
			if of.Gauges[0] != 0 || of.Gauges[1] != 0 {
				k.findings.add("kinds: at rest %v calls have a place and %v wait", of.Gauges[0], of.Gauges[1])
			}
		case "breaker":
			var counted uint64
			for _, t := range of.Transitions {
				counted += t.Count
			}
			k.mu.Lock()
			if of.State != k.state || counted != k.changes {
				k.findings.add("kinds: the breaker is %s after %d changes, and was reported as %s after %d",
					of.State, counted, k.state, k.changes)
			}
			k.mu.Unlock()
		}
	}
}
