package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// open returns the screen that a query names.
func (h *handler) open(query url.Values) (screen, error) {
	inner, err := h.screen(query)
	if err != nil {
		return nil, err
	}
	return &framed{h: h, inner: inner}, nil
}

func (h *handler) screen(query url.Values) (screen, error) {
	switch name := query.Get("screen"); name {
	case "overview":
		return newOverview(h, query)
	case "resource":
		return newResource(h, query)
	case "rules":
		return rulesScreen{h}, nil
	case "quotas":
		return newQuotas(h, query)
	case "fleet":
		return fleetScreen{h}, nil
	case "instances":
		return instancesScreen{h}, nil
	case "lists":
		return listsScreen{h}, nil
	case "history":
		return &historyScreen{h: h, log: newEventLog()}, nil
	default:
		return nil, errRequest{"there is no screen " + rule.Quote(name)}
	}
}

// framed is a screen with what the page shows above all screens.
type framed struct {
	h     *handler
	inner screen
}

// frame is what the page shows above all screens.
type frame struct {
	Strip  strip `json:"strip"`
	Screen any   `json:"screen"`
}

func (f *framed) read(ctx context.Context) (any, error) {
	shown, err := f.inner.read(ctx)
	return frame{f.h.strip(ctx), shown}, err
}

// strip says how all instances are, in numbers.
type strip struct {
	Instances int `json:"instances"`
	Current   int `json:"current"` // have the documents that are in etcd
	Silent    int `json:"silent"`  // do not answer

	Revision int64 `json:"revision"`
	Rejected int   `json:"rejected"` // documents, or lists that an instance cannot read
	HeldBack int   `json:"heldBack"` // instances that hold something back
	OnCopy   int   `json:"onCopy"`   // instances that run on a copy of the documents
	Lost     int   `json:"lost"`     // sources that are not connected, in any instance

	Load *loadShown `json:"load,omitempty"` // of the instance that is loaded most; nil if none tells

	States []namedState `json:"states"` // of rules that are not in their first state
	Forced []switched   `json:"forced"` // states of rules, and of all rules of kinds, that are forced

	Switches     []switched `json:"switches"`               // what is switched off or on
	MoreForced   int        `json:"moreForced,omitempty"`   // at least so many more
	MoreSwitches int        `json:"moreSwitches,omitempty"` // at least so many more

	Error      string    `json:"error,omitempty"`     // of etcd
	KnownSince time.Time `json:"knownSince,omitzero"` // while etcd is away: when it named the instances that are shown
}

// namedState is a state of a rule, and on how many instances it is in that.
type namedState struct {
	Resource  string    `json:"resource,omitempty"`
	Kind      rule.Kind `json:"kind"`
	Rule      string    `json:"rule,omitempty"`
	State     string    `json:"state"`
	Instances int       `json:"instances"`
}

func (h *handler) strip(ctx context.Context) strip {
	s := strip{States: []namedState{}, Forced: []switched{}, Switches: []switched{}}
	all, err := h.statuses.read(ctx)
	s.Error = textOf(err)
	rejected := make(map[string]bool)
	for _, of := range all {
		s.Instances++
		if of.err != "" {
			s.Silent++
			continue
		}
		for _, source := range of.value.Sources {
			if !source.Connected {
				s.Lost++
			}
			for _, d := range source.Documents {
				if d.Rejected != "" && source.HeldBack == "" {
					rejected[source.Name+"\x00"+d.Name] = true
				}
			}
		}
		s.addLoad(of.instance.name, of.value.Load)
		s.States = h.addStates(s.States, of.value.Limiters)
		s.Forced, s.MoreForced = addSwitches(s.Forced, s.MoreForced, of.value.Forced)
		s.Switches, s.MoreSwitches = addSwitches(s.Switches, s.MoreSwitches, of.value.Switches)
	}
	s.Rejected = len(rejected)
	if h.Store != nil {
		h.addReports(ctx, &s)
	} else if len(all) == 1 {
		s.Current, s.Revision = 1, int64(all[0].value.Revision)
	}
	return s
}

// addReports adds what the instances report to etcd.
func (h *handler) addReports(ctx context.Context, s *strip) {
	d, err := h.fleet.deployment(ctx)
	if err != nil {
		s.Error = err.Error()
		if since := h.fleet.knownSince(); !since.IsZero() {
			s.KnownSince = since
		}
		return
	}
	s.Revision = d.Revision
	if h.Engine == nil {
		_, more, _ := h.fleet.reports(ctx)
		s.Instances = len(d.Instances) + more
	}
	for _, r := range d.Instances {
		if d.IsAt(d.Revision, r) {
			s.Current++
		}
		if !r.CopiedAt.IsZero() {
			s.OnCopy++
		}
		if r.HeldBack != "" || len(r.ListsHeldBack) > 0 {
			s.HeldBack++
		}
	}
}

// loadShown is how loaded the instance is that is loaded most.
type loadShown struct {
	Instance string `json:"instance"`
	inspect.Load
}

// addLoad adds the load of an instance, which may not be known.
func (s *strip) addLoad(instance string, of *inspect.Load) {
	if of == nil {
		return
	}
	level := func(l *inspect.Load) int {
		return slices.Index([]string{"none", "light", "moderate", "severe", "shedding"}, l.Level)
	}
	if s.Load == nil || cmp.Or(cmp.Compare(level(of), level(&s.Load.Load)), cmp.Compare(of.Utilization, s.Load.Utilization)) > 0 {
		s.Load = &loadShown{instance, *of}
	}
}

// addStates adds limiters that are not in the first state of their kind.
func (h *handler) addStates(to []namedState, limiters []inspect.Limiter) []namedState {
	const most = 100
	for _, l := range limiters {
		if l.State != "" && l.State != h.firstState(l.Kind) && len(to) < most {
			to = addState(to, namedState{l.Resource, l.Kind, l.Rule, l.State, 1})
		}
	}
	return to
}

func addState(to []namedState, more namedState) []namedState {
	for i := range to {
		same := to[i]
		same.Instances = more.Instances
		if same == more {
			to[i].Instances++
			return to
		}
	}
	return append(to, more)
}

// firstState returns the state in which rules of a kind begin, such as closed.
func (h *handler) firstState(kind rule.Kind) string {
	for _, d := range h.kinds.Definitions() {
		if d.Kind() == kind && len(d.States()) > 0 {
			return d.States()[0]
		}
	}
	return ""
}
