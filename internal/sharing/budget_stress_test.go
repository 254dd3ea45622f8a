package sharing_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// However many goroutines take, no token of a lease is taken twice: with a limit of which
// all was leased, what was taken is what the store has granted and what is owed.
func TestConcurrentTakesNeverTakeMoreThanWasGranted(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := newStepped(t)
			terms := bucketOf(2000)
			budget := s.member.Budget(terms, mode, fleet.OutageClosed, s.now())
			var taken, givenBack, calls atomic.Int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			for g := range 4 {
				random := rand.New(rand.NewPCG(uint64(g), 0))
				wg.Go(func() {
					for !stop.Load() {
						calls.Add(1)
						now, n := s.clock.Now(), int32(1+random.IntN(3))
						if !budget.Take(now, n) {
							continue
						}
						taken.Add(int64(n))
						switch random.IntN(8) {
						case 0:
							givenBack.Add(int64(n))
							budget.GiveBack(now, n)
						case 1:
							taken.Add(1)
							budget.Settle(now, 1)
						}
					}
				})
			}
			const seconds = 3
			for i := range int64(seconds * 200) {
				for calls.Load() < 20*i { // so many calls in 5 ms
					runtime.Gosched()
				}
				s.step()
				s.clock.Advance(5 * ms)
			}
			stop.Store(true)
			wg.Wait()
			s.run(time.Second)
			passed := float64(taken.Load() - givenBack.Load())
			assert.LessOrEqual(t, passed, terms.Burst+terms.Limit*(seconds+1)+100, "burst, rate and debt")
			assert.Positive(t, passed)
			s.assertBalanced(budget, taken.Load()-givenBack.Load(), mode)
		})
	}
}

// assertBalanced checks that all that was granted was used or handed back, and that all that
// was used beyond that was paid.
func (s *stepped) assertBalanced(budget *lease.Budget, passed int64, mode fleet.Mode) {
	s.t.Helper()
	s.run(5 * time.Second)
	if !budget.Idle(s.now()) { // a call was refused just when the budget became quiet
		s.run(5 * time.Second)
	}
	assert.True(s.t, budget.Idle(s.now()))
	var granted, back, owed int64
	for _, r := range s.sent {
		back += r.Back
		owed += r.Owed
	}
	granted = s.granted()
	if mode == fleet.ModeLease {
		assert.Equal(s.t, passed, granted-back+owed, "granted %d, handed back %d, owed %d", granted, back, owed)
	} else {
		assert.GreaterOrEqual(s.t, granted-back+owed, passed, "tokens of buckets that have ended are lost")
	}
}

// The end of a lease, at which the member hands back what is left, and calls that give back
// at the same time neither lose tokens nor mint any.
func TestGiveBackAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	for round := range 200 {
		s := newStepped(t)
		budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageClosed, s.now())
		s.run(10 * ms)
		for !budget.Take(s.now(), 2) {
			s.run(10 * ms)
		}
		taken := s.now()
		var end clock.Instant
		for end = taken; end < taken.Add(150*ms); end = s.now() {
			s.run(10 * ms)
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 2 {
			wg.Go(func() {
				<-start
				budget.GiveBack(taken, 1)
			})
		}
		wg.Go(func() {
			<-start
			if round%2 == 0 {
				s.run(100 * ms)
			} else {
				budget.Release(s.now())
			}
		})
		close(start)
		wg.Wait()
		if round%2 == 0 {
			s.assertBalanced(budget, 0, fleet.ModeLease)
		}
	}
}

func TestQuietBudgetIsWokenByOneOfManyCalls(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := newStepped(t)
		budgets := make([]*lease.Budget, 10)
		for i := range budgets {
			budgets[i] = s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageClosed, s.now())
		}
		s.run(2 * time.Second)
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for _, budget := range budgets {
					if budget.Take(s.now(), 1) {
						passed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		assert.GreaterOrEqual(t, passed.Load(), int64(len(budgets)), "one passes on debt")
		s.run(50 * ms)
		for _, budget := range budgets {
			assert.True(t, budget.Take(s.now(), 1), "tokens were leased")
		}
	}
}
