package simulate

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rules"
)

// instance is one process of the simulated service: an engine, and the servers that work
// for it. Instances are numbered from 0.
type instance struct {
	number  int
	engine  *core.Engine
	servers []*server
	signals *signals

	// Of an instance that shares limits with others:
	member *sharing.Member
	step   uint64        // the number of the event in which the member steps next; 0 if there is none
	stepAt time.Duration // when that is

	idleSteps int           // steps in a row at steppedAt that did nothing
	steppedAt time.Duration // when it stepped last
}

// leastResources is how many names an engine has space for, as many as others have by default, if there
// are not more.
const leastResources = 10_000

// newInstance makes an instance without rules.
func (s *simulation) newInstance(load Load, number int, virtual clock.Clock) *instance {
	servers := newServers(load, number)
	i := &instance{number: number, servers: servers, signals: newSignals(load, servers)}
	var common fleet.Config
	if s.common != nil {
		common = fleet.Config{Backend: s.common.network.store, Instance: fmt.Sprintf("instance-%04d", number+1), Manual: true}
	}
	i.engine = core.New(core.Config{
		Clock:        virtual,
		Logger:       slog.New(slog.DiscardHandler),
		MaxResources: max(leastResources, len(s.rows.resources)),
		Kinds:        s.options.Kinds,
		Seed:         limiterSeed(load, number),
		Lists:        s.options.Lists,
		Observer:     core.Observer{StateChanged: func(change core.StateChange) { s.stateChanged(i, change) }},
		Fleet:        common,

		Signals:        i.signals,
		SignalInterval: -1, // sampleSignals does it
	})
	i.member = sharing.Of(i.engine.Fleet())
	return i
}

// load puts the rules in force. Limits that move begin at the start rather than with the
// first call of a resource.
func (i *instance) load(set rules.Set, resources []string) error {
	if err := i.engine.Load(set); err != nil {
		return err
	}
	for r := range set.All() {
		if r.Type().LimitMoves() {
			for _, name := range resources {
				i.engine.Resource(name)
			}
			break
		}
	}
	return nil
}

// label is how results name the instance: numbers from 1, or 0 where there is but one.
func (s *simulation) label(i *instance) int {
	if len(s.instances) == 1 {
		return 0
	}
	return i.number + 1
}
