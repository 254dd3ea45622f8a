package kindtest

import (
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
)

const (
	goroutines = 8
	rounds     = 500
)

// together runs a function in several goroutines at once.
func together(do func(goroutine int)) {
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() { do(g) })
	}
	running.Wait()
}

// concurrentCallsTakeNoMore counts the calls that pass at one instant, then those that give back
// what they took, while others look.
func concurrentCallsTakeNoMore(f *fixture) {
	f.limited()
	l := f.limiter()
	var held, most atomic.Int64
	together(func(int) {
		for range rounds {
			ticket, decision := l.Acquire(f.call(1))
			if decision != rule.Pass {
				_, _, _ = l.RetryAfter(f.call(1)), l.Status(f.now), l.Idle(f.now)
				continue
			}
			if n := held.Add(1); n > most.Load() {
				most.Store(n)
			}
			held.Add(-1)
			l.GiveBack(f.now, ticket, 1)
		}
	})
	if most.Load() > int64(f.of.Passes) {
		f.Errorf("%d calls hold what %d may", most.Load(), f.of.Passes)
	}
	var passed atomic.Int64
	together(func(int) {
		for range f.of.Passes/goroutines + rounds {
			if _, decision := l.Acquire(f.call(1)); decision == rule.Pass {
				passed.Add(1)
			}
		}
	})
	if passed.Load() != int64(f.of.Passes) {
		f.Errorf("of concurrent calls at one instant %d pass, not %d, after others gave back all that they took", passed.Load(), f.of.Passes)
	}
}

// reloadsUnderLoadLetNoMorePass changes the rule while calls come.
func reloadsUnderLoadLetNoMorePass(f *fixture) {
	f.limited()
	if f.of.Forgets {
		f.Skip("a changed rule starts anew")
	}
	present := f.limiter()
	f.adopt(f.limiter()) // skips kinds that start anew
	var inForce atomic.Pointer[rule.Limiter]
	inForce.Store(&present)
	var passed atomic.Int64
	together(func(goroutine int) {
		for i := range rounds {
			l := *inForce.Load()
			switch _, decision := l.Acquire(f.call(1)); {
			case decision == rule.Pass:
				passed.Add(1)
			case goroutine == 0 && i%10 == 0:
				to := f.of.Rule
				if i%20 == 0 {
					to = f.of.Stricter
				}
				next := to.Clone().Adopt(l, f.env())
				if a, ok := next.(rule.Activator); ok {
					a.Activate(f.now)
				}
				inForce.Store(&next)
			}
		}
	})
	if passed.Load() > int64(f.of.Passes) {
		f.Errorf("%d calls pass at one instant while the rule changes between limits of at most %d", passed.Load(), f.of.Passes)
	}
}
