package peer

import (
	"context"
	"errors"
	"math"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/system"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// Adaptives returns the limits that find out by themselves what the service can do. Where
// calls pass, nothing is overloaded. Where they are refused, some calls are under way for
// ever, and a limit that looks at the processor takes it for busy.
func Adaptives() []Protection {
	return []Protection{
		penstockAdaptive(asUsual(), adaptive.Rule{Resource: resource}),
		penstockAdaptive(atItsFastest(), adaptive.Rule{Resource: resource}),
		penstockAdaptive(usage{"penstock-inbound", clock.System, fromOutside}, adaptive.Rule{}, core.Inbound()),
		sentinelSystem(),
		{Name: Adaptive, Passing: passBBR, Refusing: refuseBBR},
		{Name: "go-zero-shedder", Passing: passShedder, Refusing: refuseShedder},
		{Name: "failsafe-adaptive", Passing: passFailsafeAdaptive, Refusing: refuseFailsafeAdaptive},
		{Name: "failsafe-executor", Passing: passFailsafeAdaptiveExecutor, Refusing: refuseFailsafeAdaptiveExecutor},
	}
}

// callsUnderWay are more calls than any of the limits lets pass for ever.
const callsUnderWay = 100

var errNotFull = errors.New("peer: the limit still lets calls pass")

// penstockAdaptive returns a rule. The calls that overload it have the options.
func penstockAdaptive(u usage, r adaptive.Rule, opts ...core.Option) Protection {
	return Protection{
		Name:    u.name,
		Passing: u.passing(rules.Set{Adaptive: []adaptive.Rule{r}}),
		Refusing: func() (Try, error) {
			small := r
			small.InitialLimit, small.MaxLimit = 1, 1
			engine, err := u.under(rules.Set{Adaptive: []adaptive.Rule{small}})
			if err != nil {
				return nil, err
			}
			return u.try(engine), overload(engine, opts)
		},
	}
}

func fromOutside(engine *core.Engine) Try {
	return func(int) bool {
		guard, err := engine.Entry(context.Background(), resource, core.Inbound())
		if err != nil {
			return false
		}
		guard.Exit()
		return true
	}
}

// overload has calls arrive, which stay under way or wait, until one is refused.
func overload(engine *core.Engine, opts []core.Option) error {
	for range callsUnderWay {
		var arrival core.Arrival
		arrival.Arrive(context.Background(), engine, resource, func() {}, opts...)
		if _, decided := arrival.Proceed(); !decided {
			continue // it waits
		}
		if _, err := arrival.Result(); err != nil {
			return nil //nolint:nilerr // the refusal that was waited for
		}
	}
	return errNotFull
}

func sentinelSystem() Protection {
	call := func(int) bool {
		entry, blocked := api.Entry(resource, api.WithTrafficType(base.Inbound))
		if blocked != nil {
			return false
		}
		entry.Exit()
		return true
	}
	limit := func(calls float64) error {
		_, err := system.LoadRules([]*system.Rule{
			{MetricType: system.Concurrency, TriggerCount: calls},
			{MetricType: system.CpuUsage, TriggerCount: 1, Strategy: system.BBR},
		})
		return err
	}
	return Protection{
		Name:    sentinelName,
		Passing: func() (Try, error) { return call, limit(manyPlaces) },
		Refusing: func() (Try, error) {
			return call, limit(0) // no call is left under way, for Sentinel counts those of all resources together
		},
	}
}

func tryBBR(limiter *bbr.BBR) Try {
	return func(int) bool {
		done, err := limiter.Allow()
		if err != nil {
			return false
		}
		done(ratelimit.DoneInfo{})
		return true
	}
}

func passBBR() (Try, error) { return tryBBR(bbr.NewLimiter(bbr.WithCPUThreshold(math.MaxInt64))), nil }

func refuseBBR() (Try, error) {
	limiter := bbr.NewLimiter(bbr.WithCPUThreshold(0))
	for range callsUnderWay {
		if _, err := limiter.Allow(); err != nil {
			return tryBBR(limiter), nil //nolint:nilerr // the refusal that was waited for
		}
	}
	return nil, errNotFull
}

func tryShedder(shedder load.Shedder) Try {
	return func(int) bool {
		promise, err := shedder.Allow()
		if err != nil {
			return false
		}
		promise.Pass()
		return true
	}
}

func passShedder() (Try, error) {
	return tryShedder(load.NewAdaptiveShedder(load.WithCpuThreshold(math.MaxInt64))), nil
}

// refuseShedder ends some of the calls under way: the shedder looks at their mean number
// when calls end. They end as failed, for it would measure the others.
func refuseShedder() (Try, error) {
	shedder := load.NewAdaptiveShedder(load.WithCpuThreshold(0))
	var promises []load.Promise
	for range 2 * callsUnderWay {
		promise, err := shedder.Allow()
		if err != nil {
			return nil, err
		}
		promises = append(promises, promise)
	}
	for _, promise := range promises[:callsUnderWay] {
		promise.Fail()
	}
	return tryShedder(shedder), nil
}

func tryFailsafeAdaptive(limiter adaptivelimiter.AdaptiveLimiter[any]) Try {
	return func(int) bool {
		permit, ok := limiter.TryAcquirePermit()
		if ok {
			permit.Record()
		}
		return ok
	}
}

func passFailsafeAdaptive() (Try, error) {
	return tryFailsafeAdaptive(adaptivelimiter.NewWithDefaults[any]()), nil
}

func fullFailsafeAdaptive() adaptivelimiter.AdaptiveLimiter[any] {
	limiter := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).Build()
	limiter.TryAcquirePermit()
	return limiter
}

func refuseFailsafeAdaptive() (Try, error) { return tryFailsafeAdaptive(fullFailsafeAdaptive()), nil }

func passFailsafeAdaptiveExecutor() (Try, error) {
	return execute(adaptivelimiter.NewWithDefaults[any]()), nil
}

func refuseFailsafeAdaptiveExecutor() (Try, error) { return execute(fullFailsafeAdaptive()), nil }
