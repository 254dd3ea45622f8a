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

// subject is an engine under test and the resources that are called.
type subject struct {
	*core.Engine
	clock    clock.Clock
	findings *findings
	targets  []*target
	promises []*promise
	refusals atomic.Uint64 // refusals that the observer has received
	swaps    atomic.Uint64
	evicts   bool // resources are evicted
}

func newSubject(c clock.Clock, w *findings, maxResources int, file core.Source) (*subject, error) {
	s := &subject{clock: c, findings: w}
	s.Engine = core.New(core.Config{
		Clock: c, Logger: slog.New(slog.DiscardHandler), MaxResources: maxResources,
		Observer: core.Observer{
			Refused: func(context.Context, *core.BlockError) { s.refusals.Add(1) },
			Swapped: func(core.Swap) { s.swaps.Add(1) },
		},
	})
	if file == nil {
		return s, nil
	}
	return s, s.Follow(context.Background(), file)
}

// addPromise adds the promise of a rule to the targets that it guards.
func (s *subject) addPromise(r flow.Rule, targets ...*target) {
	p := newPromise(r, maxTokens(r.Resource), s.clock.Now())
	s.promises = append(s.promises, p)
	for _, t := range targets {
		t.promises = append(t.promises, p)
		t.waits = t.waits || r.MaxWait > 0
		t.pauses = t.pauses || p.coldLimit > 0
	}
}

// target returns the target with the name, and creates it if necessary.
func (s *subject) target(name string) *target {
	for _, t := range s.targets {
		if t.name == name {
			return t
		}
	}
	t := &target{engine: s, name: name, tokens: maxTokens(name), seconds: map[int64]*second{}, refusals: map[string]*atomic.Uint64{}}
	s.targets = append(s.targets, t)
	return t
}

// addTarget adds the target of a rule on one resource.
func (s *subject) addTarget(r flow.Rule) {
	t := s.target(r.Resource)
	t.refusals[flow.Kind().WithDefaults(r).Name] = new(atomic.Uint64)
	t.shadowed = t.shadowed || r.Shadow
	if r.Related != "" {
		t.related = s.target(r.Related).promises[0]
		return
	}
	s.addPromise(r, t)
}

// addTargets adds one resource for each number, which a rule with a pattern guards.
func (s *subject) addTargets(r flow.Rule, prefix string, count int) {
	for i := range count {
		t := s.target(fmt.Sprint(prefix, i))
		s.addPromise(r, t)
		s.promises[len(s.promises)-1].name = t.name
		t.refusals[flow.Kind().WithDefaults(r).Name] = new(atomic.Uint64)
	}
}
