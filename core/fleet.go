package core

import (
	"context"
	"log/slog"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

// AwaitsFleet says whether the engine is not ready because [fleet.Config.AwaitBackend] is set and
// the backend of the fleet has not answered yet, although rules in force are for the whole fleet.
func (e *Engine) AwaitsFleet() bool { return e.fleet.awaited() != nil }

// watchFleet starts the goroutine that runs the member, or ends it, as rules in force need
// it. The caller holds rules.mu, so that the engine is not closed meanwhile.
func (e *Engine) watchFleet(now clock.Instant) {
	f := &e.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.member == nil || f.manual:
	case f.stop == nil && len(f.rules) > 0:
		ctx, stop := context.WithCancel(context.Background())
		before, ended := f.ended, make(chan struct{})
		f.stop, f.ended = stop, ended
		f.member.Starting(now) // calls may ask before the goroutine runs
		e.running.Go(func() {
			defer close(ended)
			if before != nil {
				<-before // a member runs once at a time
			}
			f.member.Run(ctx)
		})
	case f.stop != nil && len(f.rules) == 0:
		f.end()
	}
}

// logUnknownFleet logs that rules which have come into force are for a fleet that the engine
// does not know.
func (e *Engine) logUnknownFleet(rules []rule.Key) {
	if len(rules) == 0 {
		return
	}
	names := make([]string, 0, journal.MostNames)
	for _, key := range rules[:min(len(rules), journal.MostNames)] {
		names = append(names, key.String())
	}
	slices.Sort(names)
	e.log.Error("penstock: rules are for the whole fleet, but the engine has no backend for it: they limit each instance;"+
		" set core.Config.Fleet", slog.Any("rules", names), slog.Int("count", len(rules)))
}

// Fleet returns this instance's side of the fleet that shares limits; nil if
// [Config.Fleet] has no backend.
func (e *Engine) Fleet() *fleet.Member { return e.fleet.member }
