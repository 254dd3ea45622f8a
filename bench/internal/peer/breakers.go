package peer

import (
	"context"

	"github.com/cep21/circuit/v4"
	"github.com/cep21/circuit/v4/closers/hystrix"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
)

// otherBreakers returns the circuit breakers of the libraries that are not frameworks.
func otherBreakers() []Protection {
	return []Protection{
		circuitBreaker("failsafe-breaker", newFailsafeBreaker),
		circuitBreaker("failsafe-executor", newFailsafeBreakerExecutor),
		circuitBreaker("gobreaker", newGobreaker),
		circuitBreaker("cep21-circuit", newCircuit),
	}
}

// circuitBreaker returns a breaker that is closed at first; one that refuses has opened at
// a call that failed. newBreaker makes one that needs so many calls to open. It returns a
// call that succeeds and one that fails.
func circuitBreaker(name string, newBreaker func(minCalls int) (try Try, fail func())) Protection {
	return Protection{
		Name: name,
		Passing: func() (Try, error) {
			try, _ := newBreaker(fewestCalls)
			return try, nil
		},
		Refusing: func() (Try, error) {
			try, fail := newBreaker(1)
			fail()
			return try, nil
		},
	}
}

func failsafeBreaker(minCalls int) circuitbreaker.CircuitBreaker[any] {
	return circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(failureRatio, uint(minCalls), failureWindow).
		WithDelay(staysOpenFor).
		Build()
}

func newFailsafeBreaker(minCalls int) (try Try, fail func()) {
	b := failsafeBreaker(minCalls)
	return func(int) bool {
		if !b.TryAcquirePermit() {
			return false
		}
		b.RecordSuccess()
		return true
	}, b.RecordFailure
}

func newFailsafeBreakerExecutor(minCalls int) (try Try, fail func()) {
	b := failsafeBreaker(minCalls)
	return execute(b), b.RecordFailure
}

func gobreakerOf(minCalls int) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     failureWindow,
		BucketPeriod: failureWindow / failureBuckets,
		Timeout:      staysOpenFor,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			return int(counts.Requests) >= minCalls && float64(counts.TotalFailures) >= failureRatio*float64(counts.Requests)
		},
	})
}

func newGobreaker(minCalls int) (try Try, fail func()) {
	b := gobreakerOf(minCalls)
	succeeds := func() (struct{}, error) { return struct{}{}, nil }
	fails := func() (struct{}, error) { return struct{}{}, errFailed }
	return func(int) bool {
		_, err := b.Execute(succeeds)
		return err == nil
	}, func() { _, _ = b.Execute(fails) }
}

// newCircuit returns a circuit that is a breaker and nothing else: by default it also
// limits how many calls run at once, and for how long.
func newCircuit(minCalls int) (try Try, fail func()) {
	c := circuit.NewCircuitFromConfig(resource, circuit.Config{
		General: circuit.GeneralConfig{
			ClosedToOpenFactory: hystrix.OpenerFactory(hystrix.ConfigureOpener{
				ErrorThresholdPercentage: 100 * failureRatio,
				RequestVolumeThreshold:   int64(minCalls),
				RollingDuration:          failureWindow,
				NumBuckets:               failureBuckets,
			}),
			OpenToClosedFactory: hystrix.CloserFactory(hystrix.ConfigureCloser{SleepWindow: staysOpenFor}),
		},
		Execution: circuit.ExecutionConfig{Timeout: -1, MaxConcurrentRequests: -1},
	})
	succeeds := func(context.Context) error { return nil }
	fails := func(context.Context) error { return errFailed }
	return func(int) bool { return c.Execute(context.Background(), succeeds, nil) == nil },
		func() { _ = c.Execute(context.Background(), fails, nil) }
}
