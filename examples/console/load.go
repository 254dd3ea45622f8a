package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
)

// errPayment is how the payment service fails.
var errPayment = errors.New("payments are down")

// load makes calls at all instances until ctx ends.
func (s *shop) load(ctx context.Context) {
	var all sync.WaitGroup
	began := time.Now()
	for n, i := range s.instances {
		share := 1 + 0.3*float64(n) // the instances are not alike
		for _, c := range calls() {
			all.Go(func() { i.repeat(ctx, began, share, c) })
		}
	}
	all.Wait()
}

// call is a kind of call and how many of it come.
type call struct {
	resource string
	rate     func(since time.Duration) float64 // a second, at the smallest instance
	takes    time.Duration
	options  func() []core.Option
	fails    func(since time.Duration) bool
}

func calls() []call {
	return []call{
		{"POST:/orders", wave(20, 55, time.Minute), 60 * time.Millisecond, user, nil},
		{"pay:charge", wave(12, 20, 50*time.Second), 25 * time.Millisecond, nil, broken},
		{"GET:/search", wave(15, 34, 45*time.Second), 30 * time.Millisecond, client, nil},
		{"GET:/catalogue", wave(60, 110, 80*time.Second), 3 * time.Millisecond, client, nil},
		{"GET:/orders/:id", wave(40, 60, 70*time.Second), 4 * time.Millisecond, nil, nil},
		{"cache:get", wave(100, 140, 30*time.Second), time.Millisecond, nil, nil},
	}
}

// wave returns a rate that goes up and down.
func wave(least, most float64, period time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		return least + (most-least)*(1-math.Cos(2*math.Pi*since.Seconds()/period.Seconds()))/2
	}
}

// broken is true for ten seconds of every forty.
func broken(since time.Duration) bool { return since%(40*time.Second) > 28*time.Second }

// user returns who orders: one of many, or one who orders far too often.
func user() []core.Option {
	if rand.IntN(4) == 0 { //nolint:gosec // a load, not a secret
		return []core.Option{core.String("user", "u-48113")}
	}
	return []core.Option{core.String("user", fmt.Sprintf("u-%d", rand.IntN(400)))} //nolint:gosec // a load, not a secret
}

// client returns where a call comes from, now and then from a scraper.
func client() []core.Option {
	if rand.IntN(20) == 0 { //nolint:gosec // a load, not a secret
		return []core.Option{core.String("ip", fmt.Sprintf("192.0.2.%d", rand.IntN(256)))} //nolint:gosec // a load, not a secret
	}
	return []core.Option{core.String("ip", fmt.Sprintf("203.0.113.%d", rand.IntN(256)))} //nolint:gosec // a load, not a secret
}

// repeat makes calls of one kind until ctx ends, and returns when all have ended.
func (i *instance) repeat(ctx context.Context, began time.Time, share float64, c call) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		since := time.Since(began)
		pause := time.Duration(rand.ExpFloat64() / (share * c.rate(since)) * float64(time.Second)) //nolint:gosec // a load, not a secret
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			all.Go(func() { i.makeCall(ctx, since, c) })
		}
	}
}

func (i *instance) makeCall(ctx context.Context, since time.Duration, c call) {
	options := []core.Option{core.Inbound()}
	if c.options != nil {
		options = append(options, c.options()...)
	}
	guard, err := i.engine.Entry(ctx, c.resource, options...)
	if err != nil {
		return
	}
	defer guard.Exit()
	select {
	case <-time.After(time.Duration(float64(c.takes) * (0.5 + rand.ExpFloat64()/2))): //nolint:gosec // a load, not a secret
	case <-ctx.Done():
	}
	if c.fails != nil && c.fails(since) {
		guard.Fail(errPayment)
	}
}
