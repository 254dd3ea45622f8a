package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// live opens and closes engines until ctx ends.
func (s *soak) live(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		if err := s.life(time.Duration(random.IntN(30)) * time.Millisecond); err != nil {
			s.wrong.add("an engine that is closed: %v", err)
		}
		s.lives.Add(1)
		time.Sleep(10 * time.Millisecond)
	}
}

// life is that of one engine, which is closed while callers wait for turns that
// would come in hours.
func (s *soak) life(length time.Duration) error {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), MaxResources: 4})
	defer e.Close()
	source, err := newSource(s.dir)
	if err != nil {
		return err
	}
	err = errors.Join(e.Follow(context.Background(), source), e.Load(rules.Set{Flow: []flow.Rule{
		{Match: "wait:*", Limit: 1, Window: time.Hour, Algorithm: flow.Throttle, MaxWait: 24 * time.Hour},
		{Name: "window", Match: "*", Limit: 100},
	}}))
	if err != nil {
		return err
	}
	var callers sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		callers.Go(func() { results[i] = callUntilClosed(e, fmt.Sprint("wait:", i%2), fmt.Sprint("pass:", i)) })
	}
	time.Sleep(length)
	e.Close()
	callers.Wait()
	if _, err := e.Entry(context.Background(), "late"); !errors.Is(err, core.ErrClosed) {
		results = append(results, fmt.Errorf("lets a call pass, or says %w", err))
	}
	for _, r := range e.Snapshot().Resources {
		if r.InFlight != 0 || r.Waiting != 0 {
			results = append(results, fmt.Errorf("%s has %d calls under way and %d waiting", r.Name, r.InFlight, r.Waiting))
		}
	}
	return errors.Join(results...)
}

// callUntilClosed makes calls, and one that waits, until the engine is closed.
func callUntilClosed(e *core.Engine, waits, passes string) error {
	for i := 0; ; i++ {
		name := passes
		if i == 50 {
			name = waits
		}
		guard, err := e.Entry(context.Background(), name)
		guard.Exit()
		switch {
		case errors.Is(err, core.ErrClosed):
			return nil
		case err != nil && !errors.Is(err, core.ErrBlocked):
			return err
		}
	}
}
