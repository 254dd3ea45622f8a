package peer

import (
	"context"
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// Yardstick is the name of the limiter that all others are compared with.
const Yardstick = "rate.Allow"

// Adaptive is the name of the limiter that has no limit but refuses calls when the
// machine is overloaded.
const Adaptive = "kratos-bbr"

func otherLimiters() []Limiter {
	return []Limiter{
		{Yardstick, func(limit int) (Try, error) {
			limiter := rate.NewLimiter(rate.Limit(limit), limit)
			return func(int) bool { return limiter.Allow() }, nil
		}},
		{"uber.Take", func(limit int) (Try, error) { return take(uber.New(limit)), nil }},
		{"failsafe-bursty", func(limit int) (Try, error) {
			limiter := ratelimiter.NewBursty[any](uint(limit), time.Second)
			return func(int) bool { return limiter.TryAcquirePermit() }, nil
		}},
		{"failsafe-smooth", func(limit int) (Try, error) {
			limiter := ratelimiter.NewSmooth[any](uint(limit), time.Second)
			return func(int) bool { return limiter.TryAcquirePermit() }, nil
		}},
		{"failsafe-executor", func(limit int) (Try, error) {
			executor := failsafe.With(ratelimiter.NewBursty[any](uint(limit), time.Second))
			return func(int) bool { return executor.Run(func() error { return nil }) == nil }, nil
		}},
		{"throttled-gcra", newThrottled},
		{Adaptive, func(int) (Try, error) { return passBBR() }},
	}
}

func otherQueues() []Limiter {
	return []Limiter{
		{"rate.Wait", func(limit int) (Try, error) {
			limiter := rate.NewLimiter(rate.Limit(limit), 1)
			return func(int) bool { return limiter.Wait(context.Background()) == nil }, nil
		}},
		{"uber.Take", func(limit int) (Try, error) { return take(uber.New(limit)), nil }},
		{"uber.Take-no-slack", func(limit int) (Try, error) { return take(uber.New(limit, uber.WithoutSlack)), nil }},
		{"failsafe-smooth", func(limit int) (Try, error) {
			limiter := ratelimiter.NewSmooth[any](uint(limit), time.Second)
			return func(int) bool { return limiter.AcquirePermit(context.Background()) == nil }, nil
		}},
	}
}

func take(limiter uber.Limiter) Try {
	return func(int) bool {
		limiter.Take()
		return true
	}
}

// newThrottled returns throttled's limiter on the store that its manual recommends. It
// may retry without a bound: by default it returns an error that is not a refusal after
// ten lost races.
func newThrottled(limit int) (Try, error) {
	store, err := memstore.NewCtx(65536)
	if err != nil {
		return nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store,
		throttled.RateQuota{MaxRate: throttled.PerSec(limit), MaxBurst: limit - 1})
	if err != nil {
		return nil, err
	}
	limiter.SetMaxCASAttemptsLimit(math.MaxInt)
	return func(int) bool {
		limited, _, err := limiter.RateLimitCtx(context.Background(), resource, 1)
		return err == nil && !limited
	}, nil
}
