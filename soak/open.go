package main

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// openMain opens the engine that has every rule there is.
func (s *soak) openMain() error {
	source, err := newSource(s.dir)
	if err != nil {
		return err
	}
	e, err := newSubject(s.clock, s.wrong, resources, source)
	if err != nil {
		return err
	}
	s.main, e.forgets = e, true
	for _, r := range append(steadyRules(), changingRules(0)...) {
		switch {
		case r.Shared:
			e.promise(r, e.numbered("together:", 20))
		case r.Match != "":
			e.guardMany(r, "each:", 10)
		default:
			e.guarded(r)
		}
	}
	for _, r := range followedRules() {
		e.guarded(r)
	}
	e.of("free")
	e.of("name:").names = passing("name:", s.started, s.clock)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Ready(ctx); err != nil {
		return err
	}
	return e.Load(setOf(0, s.random(0)))
}

// openCrowd opens an engine that has no room for the names that are called.
func (s *soak) openCrowd() error {
	const room = 8
	e, err := newSubject(s.clock, s.wrong, room, nil)
	if err != nil {
		return err
	}
	s.crowd = e
	if err := e.Load(rules.Set{Flow: crowdedRules()}); err != nil {
		return err
	}
	r := crowdedRules()[0]
	e.guardMany(r, "crowd:", room)
	first := &caller{clock: s.clock, random: s.random(0)}
	for _, t := range e.targets { // they are there first, and stay as long as they are called
		first.guards(t, first.newCall(t))
	}
	e.promise(flow.Rule{Name: r.Name, Match: "crowd:* beyond", Limit: r.Limit}, e.numbered("crowd:x", 500))
	return nil
}

func (s *subject) numbered(prefix string, count int) *target {
	t := s.of(prefix)
	t.names = numbered(prefix, count)
	return t
}

// choice returns the targets that callers choose among, those that are many more
// often.
func (s *soak) choice() (targets []*target) {
	for _, e := range []*subject{s.main, s.crowd} {
		for _, t := range e.targets {
			targets = append(targets, t)
			if t.many() {
				targets = append(targets, t, t)
			}
		}
	}
	return targets
}
