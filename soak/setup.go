package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// openMain opens the engine that has all rules.
func (s *soak) openMain() error {
	source, err := newSource(s.dir)
	if err != nil {
		return err
	}
	e, err := newSubject(s.clock, s.findings, resources, source)
	if err != nil {
		return err
	}
	s.main, e.evicts = e, true
	for _, r := range append(steadyRules(), changingRules(0)...) {
		switch {
		case r.Shared:
			e.addPromise(r, e.numberedTarget("together:", 20))
		case r.Match != "":
			e.addTargets(r, "each:", 10)
		default:
			e.addTarget(r)
		}
	}
	for _, r := range followedRules() {
		e.addTarget(r)
	}
	e.target("free")
	e.target("name:").names = temporaryNames("name:", s.started, s.clock)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Ready(ctx); err != nil {
		return err
	}
	return e.Load(setOf(0, s.random(0)))
}

// openCrowded opens an engine whose MaxResources is lower than the number of names.
func (s *soak) openCrowded() error {
	const room = 8
	e, err := newSubject(s.clock, s.findings, room, nil)
	if err != nil {
		return err
	}
	s.crowded = e
	if err := e.Load(rules.Set{Flow: crowdedRules()}); err != nil {
		return err
	}
	r := crowdedRules()[0]
	e.addTargets(r, "crowd:", room)
	first := &caller{clock: s.clock, random: s.random(0)}
	for _, t := range e.targets { // these are created first, and stay as long as they are called
		first.exitGuard(t, first.newCall(t))
	}
	e.addPromise(flow.Rule{Name: r.Name, Match: "crowd:* beyond", Limit: r.Limit}, e.numberedTarget("crowd:x", 500))
	return nil
}

func (s *subject) numberedTarget(prefix string, count int) *target {
	t := s.target(prefix)
	t.names = numberedNames(prefix, count)
	return t
}

// targets returns the targets for callers to choose from. Targets with many names are
// listed several times.
func (s *soak) targets() (targets []*target) {
	for _, e := range []*subject{s.main, s.crowded} {
		for _, t := range e.targets {
			targets = append(targets, t)
			if t.many() {
				targets = append(targets, t, t)
			}
		}
	}
	return targets
}
