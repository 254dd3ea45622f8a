package core

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

// FleetStatus tells how an engine shares limits with the other instances of its service.
type FleetStatus struct {
	fleet.Status

	// Err is [ErrNoFleet] if rules in force are for the whole fleet, but the engine has no
	// backend for it; else nil.
	Err error

	// Rules is how many rules in force are for the whole fleet.
	Rules int
}

// ErrNoFleet says that rules limit the whole fleet, but the engine does not know it.
var ErrNoFleet = errors.New("core: the engine has no backend for its fleet, so that rules with scope fleet limit each instance:" +
	" set core.Config.Fleet")

// fleetMember is the engine's side of the fleet. A goroutine runs the member while rules in
// force are for the whole fleet.
type fleetMember struct {
	member *fleet.Member // nil without a backend
	awaits bool          // the engine is ready only when the backend has answered once
	manual bool          // whoever has made the engine runs the member

	mu    sync.Mutex // guards what follows
	rules map[rule.Key]struct{}
	stop  context.CancelFunc // ends the goroutine; nil while there is none
	ended chan struct{}      // closed when the last goroutine has ended; nil before the first
}

func (f *fleetMember) init(config *Config, log *slog.Logger) {
	f.rules = make(map[rule.Key]struct{})
	if mistake := rule.CheckName(config.Fleet.Instance); mistake != "" {
		panic("core: Config.Fleet.Instance " + mistake)
	}
	if config.Fleet.Backend != nil || config.Fleet.Manual {
		f.member = fleet.NewMember(config.Fleet, config.Clock, log, config.Seed)
		f.manual, f.awaits = config.Fleet.Manual, config.Fleet.AwaitBackend
	}
}

// awaited returns a channel that is closed when the backend answers for the first time, if that
// keeps the engine from being ready, else nil.
func (f *fleetMember) awaited() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaits || len(f.rules) == 0 {
		return nil
	}
	answered := f.member.Answered()
	select {
	case <-answered:
		return nil
	default:
		return answered
	}
}

// AwaitsFleet says whether the engine is not ready because [fleet.Config.AwaitBackend] is set and
// the backend of the fleet has not answered yet, although rules in force are for the whole fleet.
func (e *Engine) AwaitsFleet() bool { return e.fleet.awaited() != nil }

// replace notes that a rule comes into force in place of another one; either may be nil. It
// says whether one comes that is for the whole fleet, while the engine does not know that.
func (f *fleetMember) replace(from, to rule.Rule) (unknown bool) {
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
	return is && f.member == nil
}

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

// end ends the goroutine, if there is one: the member hands back what it has leased, which
// takes no longer than its timeout. The caller holds f.mu.
func (f *fleetMember) end() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// close ends the goroutine for good.
func (f *fleetMember) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
}

// status returns how the engine shares limits; nil if it has no limit to share and no
// backend to do so.
func (f *fleetMember) status(now clock.Instant) *FleetStatus {
	f.mu.Lock()
	rules := len(f.rules)
	f.mu.Unlock()
	if f.member == nil && rules == 0 {
		return nil
	}
	status := FleetStatus{Rules: rules}
	if f.member == nil {
		status.Err = ErrNoFleet
	} else {
		status.Status = f.member.Status(now)
	}
	return &status
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
