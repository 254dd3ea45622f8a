package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/clock"
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

// ErrNoFleet says that rules limit the whole fleet, but the engine does not know it.
var ErrNoFleet = errors.New("core: the engine has no backend for its fleet, so that rules with scope fleet limit each instance:" +
	" set core.Config.Fleet")

// fleetLogger returns the logger of the fleet's member, whose lines become events, too.
func fleetLogger(of *callEnv) *slog.Logger { return slog.New(&fleetLog{of.log.Handler(), of}) }

// fleetLog is a handler that makes events of the lines of the fleet.
type fleetLog struct {
	slog.Handler
	env *callEnv
}

// Enabled implements [slog.Handler].
func (f *fleetLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (f *fleetLog) Handle(ctx context.Context, line slog.Record) error {
	e := Event{At: f.env.clock.Now(), Type: EventFleet, Text: strings.TrimPrefix(line.Message, "penstock: ")}
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" || a.Key == "panic" {
			e.Err = a.Value.String()
		}
		return true
	})
	f.env.events.add(e)
	if !f.Handler.Enabled(ctx, line.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, line)
}
