package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
)

// Fleet tells how an engine shares limits with the other instances of its service. Rates are
// tokens per second, of late.
type Fleet struct {
	Rules     int       `json:"rules"` // in force that are for the whole fleet
	Instance  string    `json:"instance,omitempty"`
	Connected bool      `json:"connected"`       // the backend answers
	Since     time.Time `json:"since,omitzero"`  // when that last changed
	Error     string    `json:"error,omitempty"` // why the backend does not answer, or that there is none
	Latency   float64   `json:"latency"`         // how long answers took of late, in seconds
	Outages   int64     `json:"outages"`         // that have begun
	Requests  int64     `json:"requests"`        // that were sent
	Lost      int64     `json:"lost,omitempty"`  // batches of requests that had no answer
	Instances int       `json:"instances"`       // of the fleet, as last known

	// Limits are those with the greatest demand here, by key, at most [fleet.MaxUses].
	Limits []FleetLimit `json:"limits,omitempty"`

	// SharesError says why the shares of the instances are not known, "" if they are or
	// nobody has asked for them, see statusWithShares.
	SharesError string `json:"sharesError,omitempty"`
}

// FleetLimit tells how a limit of the whole fleet is.
type FleetLimit struct {
	Key      string         `json:"key"` // the kind, the rule and, if each has a limit of its own, the resource
	Mode     fleet.Mode     `json:"mode"`
	OnOutage fleet.OnOutage `json:"onOutage"`
	Limit    float64        `json:"limit"`  // of the fleet, per window
	Window   string         `json:"window"` // such as "1s"; "" of a limit on calls under way, and of a balance

	// Balance says that nothing flows back: the limit is what the balance began with.
	Balance bool `json:"balance,omitempty"`

	// Places is what this instance has of a limit on calls under way, whose demand and what has
	// passed are places wanted and in use; nil of others.
	Places *FleetPlaces `json:"places,omitempty"`

	// Of this instance:
	Granted Ceiling   `json:"granted"` // by the backend; in an outage, what OnOutage lets pass now
	Demand  float64   `json:"demand"`
	Passed  float64   `json:"passed"`
	Outage  bool      `json:"outage,omitempty"` // the limit goes on without the backend
	Since   time.Time `json:"since,omitzero"`   // of the outage
	Error   string    `json:"error,omitempty"`  // what the backend says to requests of this limit

	// Fleet is what all instances together use, and Shares what each of them does, those
	// with the greatest demand first; nil if that is not known.
	Fleet  *FleetUse  `json:"fleet,omitempty"`
	Shares []FleetUse `json:"shares,omitempty"`
}

// FleetPlaces is what an instance has of a limit on calls under way in the whole fleet.
type FleetPlaces struct {
	Held      int64 `json:"held"`      // places that its calls may have
	InUse     int64 `json:"inUse"`     // calls under way
	Waiting   int64 `json:"waiting"`   // calls that wait for a place
	Wanted    int64 `json:"wanted"`    // places that its calls want
	Target    int64 `json:"target"`    // places that it should have beside the others
	Instances int64 `json:"instances"` // that have places or want some
}

// FleetUse is what one instance, or all of them, use of a limit.
type FleetUse struct {
	Instance string  `json:"instance,omitempty"` // "" for all of them
	Demand   float64 `json:"demand"`
	Passed   float64 `json:"passed"`
}

// fleetOf returns how an engine shares limits, as it knows by itself.
func fleetOf(of *core.FleetStatus, c clock.Clock) *Fleet {
	if of == nil {
		return nil
	}
	f := &Fleet{
		Rules: of.Rules, Instance: of.Instance, Connected: of.Connected, Since: timeOf(c, of.Since),
		Error: textOf(cmp.Or(of.Err, of.Status.Err)), Latency: of.Latency.Seconds(), Outages: of.Outages,
		Requests: of.Requests, Lost: of.Lost, Instances: of.Instances,
	}
	for i := range of.Limits {
		l := &of.Limits[i]
		limit := FleetLimit{
			Key: l.Key, Mode: l.Mode, OnOutage: l.OnOutage, Limit: l.Limit, Window: l.Window.String(),
			Granted: Ceiling(l.Granted), Demand: l.Demand, Passed: l.Passed, Outage: l.Outage, Error: textOf(l.Err),
		}
		if l.IsBalance {
			limit.Window, limit.Balance = "", true
		}
		if p := l.Places; p != nil {
			limit.Window, limit.Granted, limit.Demand, limit.Passed = "", Ceiling(p.Held), float64(p.Wanted), float64(p.InUse)
			limit.Places = &FleetPlaces{p.Held, p.InUse, p.Waiting, p.Wanted, p.Target, p.Instances}
		}
		if l.Outage {
			limit.Since = timeOf(c, l.Since)
		}
		f.Limits = append(f.Limits, limit)
	}
	return f
}

// statusWithShares returns the status of the engine with the shares that all instances have
// of the limits of their fleet. It asks the backend, no longer than its timeout or until the
// context ends; if it cannot tell, the status says why.
func statusWithShares(ctx context.Context, engine *core.Engine) Status {
	return withShares(ctx, engine, presentStatus(engine))
}

func withShares(ctx context.Context, engine *core.Engine, status Status) Status {
	if status.Fleet == nil || engine.Fleet() == nil || len(status.Fleet.Limits) == 0 {
		return status
	}
	known, err := engine.Fleet().Fleet(ctx)
	if err != nil {
		status.Fleet.SharesError = err.Error()
		return status
	}
	status.Fleet.Instances = known.Count
	for i := range status.Fleet.Limits {
		status.Fleet.Limits[i].addShares(known.Instances)
	}
	return status
}

// addShares adds what the instances use.
func (l *FleetLimit) addShares(instances []fleet.Instance) {
	l.Fleet = new(FleetUse)
	for _, instance := range instances {
		for _, use := range instance.Limits {
			if use.Key == l.Key {
				l.Shares = append(l.Shares, FleetUse{instance.ID, use.Demand, use.Passed})
				l.Fleet.Demand += use.Demand
				l.Fleet.Passed += use.Passed
			}
		}
	}
	slices.SortFunc(l.Shares, func(a, b FleetUse) int {
		return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Instance, b.Instance))
	})
}
