// Package membership runs an instance in its fleet while rules in force are for the whole fleet.
package membership

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rule"
)

// Membership is the engine's side of the fleet. A goroutine runs the member while rules in
// force are for the whole fleet.
type Membership struct {
	Member *sharing.Member // nil without a backend
	awaits bool            // the engine is ready only when the backend has answered once
	manual bool            // whoever has made the engine runs the member

	mu    sync.Mutex // guards what follows
	rules map[rule.Key]struct{}
	stop  context.CancelFunc // ends the goroutine; nil while there is none
	ended chan struct{}      // closed when the last goroutine has ended; nil before the first
}

// Awaited returns a channel that is closed when the backend answers for the first time, if that
// keeps the engine from being ready, else nil.
func (f *Membership) Awaited() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaits || len(f.rules) == 0 {
		return nil
	}
	answered := f.Member.Answered()
	select {
	case <-answered:
		return nil
	default:
		return answered
	}
}

// IsLimited says whether there is a backend that cannot do what some rules need, see [Membership.Check].
func (f *Membership) IsLimited() bool { return f.Member != nil && f.Member.CheckPlaces() != nil }

// Check says why a rule cannot be put in force with the backend that there is.
func (f *Membership) Check(r rule.Rule) error {
	if f.Member == nil || !r.Places() {
		return nil
	}
	if err := f.Member.CheckPlaces(); err != nil {
		return fmt.Errorf("core: rule %v: %w", r.Key(), err)
	}
	return nil
}

// Replace notes that a rule comes into force in place of another one; either may be nil. It
// says whether one comes that is for the whole fleet, while the engine does not know that.
func (f *Membership) Replace(from, to rule.Rule) (unknown bool) {
	was, is := from != nil && from.Fleet(), to != nil && to.Fleet()
	if !was && !is {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if was {
		delete(f.rules, from.Key())
	}
	if is {
		f.rules[to.Key()] = struct{}{}
	}
	return is && f.Member == nil
}

// end ends the goroutine, if there is one: the member hands back what it has leased, which
// takes no longer than its timeout. The caller holds f.mu.
func (f *Membership) end() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// Close ends the goroutine for good.
func (f *Membership) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

// Watch starts the goroutine that runs the member, or ends it, as rules in force need it. start starts a
// goroutine.
func (f *Membership) Watch(now clock.Instant, start func(func())) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.Member == nil || f.manual:
	case f.stop == nil && len(f.rules) > 0:
		ctx, stop := context.WithCancel(context.Background())
		before, ended := f.ended, make(chan struct{})
		f.stop, f.ended = stop, ended
		f.Member.Starting(now) // calls may ask before the goroutine runs
		start(func() {
			defer close(ended)
			if before != nil {
				<-before // a member runs once at a time
			}
			f.Member.Run(ctx)
		})
	case f.stop != nil && len(f.rules) == 0:
		f.end()
	}
}

// InForce returns how many rules in force are for the whole fleet.
func (f *Membership) InForce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rules)
}

// Init makes the member of a fleet that has a backend, or that somebody else runs.
func (f *Membership) Init(config fleet.Config, of clock.Clock, log *slog.Logger, seed uint64) {
	f.rules = make(map[rule.Key]struct{})
	if config.Backend != nil || config.Manual {
		f.Member = sharing.NewMember(config, of, log, seed)
		f.manual, f.awaits = config.Manual, config.AwaitBackend
	}
}
