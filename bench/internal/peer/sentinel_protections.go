package peer

import (
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/circuitbreaker"
	"github.com/alibaba/sentinel-golang/core/flow"
	"github.com/alibaba/sentinel-golang/core/isolation"
)

func sentinelIsolation() Protection {
	load := func(limit uint32) error {
		_, err := isolation.LoadRules([]*isolation.Rule{isolationOf(limit)})
		return err
	}
	return Protection{
		Name:    sentinelName,
		Passing: func() (Try, error) { return sentinelCall, load(manyPlaces) },
		Refusing: func() (Try, error) {
			if err := load(1); err != nil {
				return nil, err
			}
			if _, blocked := api.Entry(resource); blocked != nil { // it has the place until the next [Reset]
				return nil, blocked
			}
			return sentinelCall, nil
		},
	}
}

func sentinelBreaker() Protection {
	load := func(minCalls uint64) error {
		_, err := circuitbreaker.LoadRules([]*circuitbreaker.Rule{breakerOf(minCalls)})
		return err
	}
	return Protection{
		Name:    sentinelName,
		Passing: func() (Try, error) { return sentinelCall, load(fewestCalls) },
		Refusing: func() (Try, error) {
			if err := load(1); err != nil {
				return nil, err
			}
			entry, blocked := api.Entry(resource)
			if blocked != nil {
				return nil, blocked
			}
			api.TraceError(entry, errFailed)
			entry.Exit()
			return sentinelCall, nil
		},
	}
}

func sentinelComposition() Protection {
	return Protection{Name: sentinelName, Passing: func() (Try, error) {
		if _, err := flow.LoadRules([]*flow.Rule{{Resource: resource, Threshold: Huge}}); err != nil {
			return nil, err
		}
		if _, err := isolation.LoadRules([]*isolation.Rule{isolationOf(manyPlaces)}); err != nil {
			return nil, err
		}
		_, err := circuitbreaker.LoadRules([]*circuitbreaker.Rule{breakerOf(fewestCalls)})
		return sentinelCall, err
	}}
}

func isolationOf(limit uint32) *isolation.Rule {
	return &isolation.Rule{Resource: resource, MetricType: isolation.Concurrency, Threshold: limit}
}

func breakerOf(minCalls uint64) *circuitbreaker.Rule {
	return &circuitbreaker.Rule{
		Resource: resource, Strategy: circuitbreaker.ErrorRatio, Threshold: failureRatio, MinRequestAmount: minCalls,
		StatIntervalMs: uint32(failureWindow / time.Millisecond), StatSlidingWindowBucketCount: failureBuckets,
		RetryTimeoutMs: uint32(staysOpenFor / time.Millisecond),
	}
}

// sentinelCall is a [Try] of the resource that the rules are for.
func sentinelCall(int) bool { return sentinel{}.Call(resource) }
