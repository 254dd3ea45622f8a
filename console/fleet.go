package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// fleetScreen shows the limits that all instances share.
type fleetScreen struct{ h *handler }

// fleetShown is what the page gets.
type fleetShown struct {
	Limits  []limitShown    `json:"limits"`
	Members []memberOfFleet `json:"members"`
}

// limitShown is a limit, and what each instance uses of it.
type limitShown struct {
	Key      string  `json:"key"`
	Mode     string  `json:"mode"`
	OnOutage string  `json:"onOutage"`
	Limit    float64 `json:"limit"` // per window
	Window   string  `json:"window"`
	Balance  bool    `json:"balance,omitempty"` // what is left is on the screen of quotas
	Passed   float64 `json:"passed"`            // a second
	Demand   float64 `json:"demand"`
	Outages  int     `json:"outages"` // instances that go on without the backend

	// Places is what all instances have of a limit on calls under way: nil of others.
	Places *inspect.FleetPlaces `json:"places,omitempty"`

	Parts []part `json:"parts"`
}

// part is what one instance uses.
type part struct {
	Instance string          `json:"instance"`
	Granted  inspect.Ceiling `json:"granted"`
	Passed   float64         `json:"passed"`
	Demand   float64         `json:"demand"`
	Outage   bool            `json:"outage"`
	Since    time.Time       `json:"since,omitzero"`
	Error    string          `json:"error,omitempty"`

	Places *inspect.FleetPlaces `json:"places,omitempty"`
}

// memberOfFleet is how an instance reaches the backend.
type memberOfFleet struct {
	Instance  string  `json:"instance"`
	Connected bool    `json:"connected"`
	Latency   float64 `json:"latency"` // in seconds
	Outages   int64   `json:"outages"`
	Error     string  `json:"error,omitempty"`
}

func (s fleetScreen) read(ctx context.Context) (any, error) {
	all, err := s.h.statuses.read(ctx)
	if err != nil {
		return nil, err
	}
	shown := fleetShown{Limits: []limitShown{}, Members: []memberOfFleet{}}
	for _, of := range all {
		if of.err != "" {
			shown.Members = append(shown.Members, memberOfFleet{Instance: of.instance.name, Error: of.err})
			continue
		}
		if f := of.value.Fleet; f != nil {
			shown.Members = append(shown.Members, memberOfFleet{of.instance.name, f.Connected, f.Latency, f.Outages, f.Error})
			for i := range f.Limits {
				shown.add(of.instance.name, &f.Limits[i])
			}
		}
	}
	for i := range shown.Limits {
		slices.SortFunc(shown.Limits[i].Parts, func(a, b part) int {
			return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Instance, b.Instance))
		})
	}
	return shown, nil
}

// add adds the part that an instance has of a limit.
func (f *fleetShown) add(instance string, l *inspect.FleetLimit) {
	i := slices.IndexFunc(f.Limits, func(s limitShown) bool { return s.Key == l.Key })
	if i < 0 {
		i = len(f.Limits)
		f.Limits = append(f.Limits, limitShown{
			Key: l.Key, Mode: string(l.Mode), OnOutage: string(l.OnOutage), Limit: l.Limit, Window: l.Window, Balance: l.Balance,
		})
	}
	to := &f.Limits[i]
	to.Passed += l.Passed
	to.Demand += l.Demand
	if l.Outage {
		to.Outages++
	}
	to.Parts = append(to.Parts, part{instance, l.Granted, l.Passed, l.Demand, l.Outage, l.Since, l.Error, l.Places})
	if of := l.Places; of != nil {
		sum := cmp.Or(to.Places, new(inspect.FleetPlaces))
		sum.Held += of.Held
		sum.InUse += of.InUse
		sum.Waiting += of.Waiting
		sum.Wanted += of.Wanted
		sum.Instances = max(sum.Instances, of.Instances)
		to.Places = sum
	}
}
