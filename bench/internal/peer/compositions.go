package peer

import (
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// otherCompositions returns what is composed of policies or of libraries.
func otherCompositions() []Protection {
	return []Protection{
		{Name: "failsafe-executor", Passing: func() (Try, error) {
			return execute(failsafeBreaker(fewestCalls), bulkhead.New[any](manyPlaces),
				ratelimiter.NewBursty[any](Huge, time.Second)), nil
		}},
		{Name: "by-hand", Passing: byHand},
	}
}

// byHand composes a call of libraries that do one thing each: x/time/rate in
// x/sync/semaphore in gobreaker.
func byHand() (Try, error) {
	limiter, places := rate.NewLimiter(Huge, Huge), semaphore.NewWeighted(manyPlaces)
	b := gobreakerOf(fewestCalls)
	call := func() (struct{}, error) {
		if !places.TryAcquire(1) {
			return struct{}{}, errRefused
		}
		defer places.Release(1)
		if !limiter.Allow() {
			return struct{}{}, errRefused
		}
		return struct{}{}, nil
	}
	return func(int) bool {
		_, err := b.Execute(call)
		return err == nil
	}, nil
}
