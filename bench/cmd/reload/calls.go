package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/bench/internal/peer"
	"github.com/penstock-go/penstock/bench/internal/report"
)

// addCalls adds what calls take while no rules are loaded, and while they are.
func addCalls(table *report.Table, framework peer.Framework, duration time.Duration) error {
	guards := framework.New(peer.Settings{})
	resources := peer.Names("guarded", 1000)
	sets := twoSets(guards, resources, len(resources))
	if err := sets[0](); err != nil {
		return err
	}
	calls, err := observe(guards, resources[0], duration)
	if err != nil {
		return err
	}
	table.Add(append([]string{framework.Name + ", idle", "0"}, quantiles(calls)...)...)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	loads, failed := 0, error(nil)
	var reloading sync.WaitGroup
	reloading.Go(func() { loads, failed = reload(ctx, sets) })
	calls, err = observe(guards, resources[0], duration)
	stop()
	reloading.Wait()
	if err := errors.Join(err, failed, peer.Reset()); err != nil {
		return err
	}
	rate := fmt.Sprintf("%.0f", float64(loads)/duration.Seconds())
	table.Add(append([]string{framework.Name + ", reloading", rate}, quantiles(calls)...)...)
	return nil
}

// reload loads the sets in turn until ctx ends.
func reload(ctx context.Context, sets [2]func() error) (loads int, err error) {
	for ; ctx.Err() == nil; loads++ {
		if err := sets[(loads+1)%2](); err != nil {
			return loads, err
		}
	}
	return loads, nil
}

// observe calls a resource repeatedly and returns how long each call took. A refused
// call is an error.
func observe(guards peer.Guards, resource string, duration time.Duration) (*latencies, error) {
	var took latencies
	for began, now := time.Now(), time.Now(); now.Sub(began) < duration; {
		if !guards.Call(resource) {
			return nil, errors.New("a call was refused that no limit forbids")
		}
		after := time.Now()
		took.add(after.Sub(now))
		now = after
	}
	return &took, nil
}

// quantiles returns the cells that describe how long calls took.
func quantiles(took *latencies) (cells []string) {
	for _, part := range []float64{0.5, 0.99, 0.999, 1} {
		cells = append(cells, took.quantile(part).String())
	}
	return cells
}
