package peer

import (
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"
)

// otherIsolations returns the concurrency limits of the libraries that are not frameworks.
func otherIsolations() []Protection {
	return []Protection{
		semaphoreLike("failsafe-bulkhead", func(places int) (func() bool, func()) {
			limit := bulkhead.New[any](uint(places))
			return limit.TryAcquirePermit, limit.ReleasePermit
		}),
		{Name: "failsafe-executor", Passing: passBulkhead, Refusing: refuseBulkhead},
		semaphoreLike("semaphore", func(places int) (func() bool, func()) {
			limit := semaphore.NewWeighted(int64(places))
			return func() bool { return limit.TryAcquire(1) }, func() { limit.Release(1) }
		}),
		semaphoreLike("channel", func(places int) (func() bool, func()) {
			limit := make(chan struct{}, places)
			return func() bool { return tryPut(limit) }, func() { <-limit }
		}),
	}
}

// semaphoreLike returns a limit whose places are acquired and released. newLimit makes one
// with so many places.
func semaphoreLike(name string, newLimit func(places int) (acquire func() bool, release func())) Protection {
	call := func(acquire func() bool, release func()) Try {
		return func(int) bool {
			if !acquire() {
				return false
			}
			release()
			return true
		}
	}
	return Protection{
		Name:    name,
		Passing: func() (Try, error) { return call(newLimit(manyPlaces)), nil },
		Refusing: func() (Try, error) {
			acquire, release := newLimit(1)
			acquire()
			return call(acquire, release), nil
		},
	}
}

func tryPut(limit chan<- struct{}) bool {
	select {
	case limit <- struct{}{}:
		return true
	default:
		return false
	}
}

func passBulkhead() (Try, error) { return execute(bulkhead.New[any](manyPlaces)), nil }

func refuseBulkhead() (Try, error) {
	limit := bulkhead.New[any](1)
	limit.TryAcquirePermit()
	return execute(limit), nil
}

// execute returns calls that do nothing, under the policies of failsafe, the outermost
// first.
func execute(policies ...failsafe.Policy[any]) Try {
	executor := failsafe.With(policies...)
	return func(int) bool { return executor.Run(succeed) == nil }
}

// succeed is a call that does nothing.
func succeed() error { return nil }
