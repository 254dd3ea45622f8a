package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// subject is an engine and what is called of it.
type subject struct {
	*core.Engine
	clock    clock.Clock
	wrong    *wrong
	targets  []*target
	promises []*promise
	refused  atomic.Uint64 // as the observer is told
	swaps    atomic.Uint64
	forgets  bool // resources come and go
}

func newSubject(c clock.Clock, w *wrong, maxResources int, file core.Source) (*subject, error) {
	s := &subject{clock: c, wrong: w}
	s.Engine = core.New(core.Config{
		Clock: c, Logger: slog.New(slog.DiscardHandler), MaxResources: maxResources,
		Observer: core.Observer{
			Refused: func(*core.BlockError) { s.refused.Add(1) },
			Swapped: func(core.Swap) { s.swaps.Add(1) },
		},
	})
	if file == nil {
		return s, nil
	}
	return s, s.Follow(context.Background(), file)
}

// promise adds what a rule promises to those of the targets that it guards.
func (s *subject) promise(r flow.Rule, targets ...*target) {
	p := newPromise(r, most(r.Resource), s.clock.Now())
	s.promises = append(s.promises, p)
	for _, t := range targets {
		t.promises = append(t.promises, p)
		t.waits = t.waits || r.MaxWait > 0
		t.sleeps = t.sleeps || p.coldLimit > 0
	}
}

// of returns the target of that name, a new one if there is none yet.
func (s *subject) of(name string) *target {
	for _, t := range s.targets {
		if t.name == name {
			return t
		}
	}
	t := &target{engine: s, name: name, tokens: most(name), seconds: map[int64]*second{}, refusals: map[string]*atomic.Uint64{}}
	s.targets = append(s.targets, t)
	return t
}

// guarded adds the target of a rule on one resource.
func (s *subject) guarded(r flow.Rule) {
	t := s.of(r.Resource)
	t.refusals[r.WithDefaults().Name] = new(atomic.Uint64)
	t.shadowed = t.shadowed || r.Shadow
	if r.Related != "" {
		t.relation = s.of(r.Related).promises[0]
		return
	}
	s.promise(r, t)
}

// guardMany adds one resource for each number, which a rule with a pattern guards.
func (s *subject) guardMany(r flow.Rule, prefix string, count int) {
	for i := range count {
		t := s.of(fmt.Sprint(prefix, i))
		s.promise(r, t)
		s.promises[len(s.promises)-1].name = t.name
		t.refusals[r.WithDefaults().Name] = new(atomic.Uint64)
	}
}
