package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/journal"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

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
func (e *Engine) Fleet() fleet.Member {
	if e.fleet.Member == nil {
		return nil
	}
	return e.fleet.Member
}

// FleetStatus tells how an engine shares limits with the other instances of its service.
type FleetStatus struct {
	fleet.Status

	// Err says so if rules in force are for the whole fleet, but the engine has no backend for it; else nil.
	Err error

	// Rules is how many rules in force are for the whole fleet.
	Rules int
}

// errNoFleet says that rules limit the whole fleet, but the engine does not know it.
var errNoFleet = errors.New("core: the engine has no backend for its fleet, so that rules with scope fleet limit each instance:" +
	" set core.Config.Fleet")

// fleetStatus returns how the engine shares limits; nil if it has no limit to share and no
// backend to do so.
func (e *Engine) fleetStatus(now clock.Instant) *FleetStatus {
	member, rules := e.fleet.Member, e.fleet.InForce()
	if member == nil && rules == 0 {
		return nil
	}
	status := FleetStatus{Rules: rules}
	if member == nil {
		status.Err = errNoFleet
	} else {
		status.Status = member.Status(now)
	}
	return &status
}

// fleetLogger returns the logger of the fleet's member, whose lines become events, too.
func (e *callEnv) fleetLogger() *slog.Logger { return slog.New(&fleetLog{e.log.Handler(), e}) }

// fleetLog is a handler that makes events of the lines of the fleet.
type fleetLog struct {
	slog.Handler
	env *callEnv
}

// Enabled implements [slog.Handler].
func (f *fleetLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements [slog.Handler].
func (f *fleetLog) Handle(ctx context.Context, line slog.Record) error {
	e := Event{At: f.env.clock.Now(), Type: eventFleet, Text: strings.TrimPrefix(line.Message, "penstock: ")}
	line.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "error" || a.Key == "panic":
			e.Err = a.Value.String()
		case a.Key == "outages" && a.Value.Int64() > 1:
			e.Text += fmt.Sprintf(", %d times since this was told last", a.Value.Int64())
		}
		return true
	})
	f.env.events.add(e)
	if !f.Handler.Enabled(ctx, line.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, line)
}
