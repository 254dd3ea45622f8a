package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// scenario is one run: a limit, a demand, and what happens to the server.
type scenario struct {
	Mode     fleet.Mode
	OnOutage fleet.OnOutage // "": the default
	Limit    float64        // calls per second, of all instances together
	Load     float64        // the demand, as a multiple of the limit
	Skewed   bool           // one instance has 90 % of the demand, rather than all the same

	Instances int
	Duration  time.Duration
	Seed      uint64
	Log       bool // what the engines log goes to the standard error, from warnings on

	Delay time.Duration // by which answers of the server come later
	Fault *fault        `json:"-"` // nil: none
}

// String names the run.
func (s *scenario) String() string {
	text := fmt.Sprintf("%s %.0f/s %g × %s", s.Mode, s.Limit, s.Load, s.demand())
	if s.Delay > 0 {
		text += fmt.Sprintf(", answers %v later", s.Delay)
	}
	if s.Fault != nil {
		text += fmt.Sprintf(", %s, onOutage %s", s.Fault.name, s.OnOutage)
	}
	return text
}

func (s *scenario) demand() string {
	if s.Skewed {
		return "90 %"
	}
	return "even"
}

// rate returns how many calls an instance makes per second.
func (s *scenario) rate(instance int) float64 {
	total := s.Limit * s.Load
	switch {
	case !s.Skewed:
		return total / float64(s.Instances)
	case instance == 0:
		return 0.9 * total
	default:
		return 0.1 * total / float64(s.Instances-1)
	}
}

// rule is the rule that all instances have.
func (s *scenario) rule() flow.Rule {
	return flow.Rule{
		Name: ruleName, Resource: resource, Limit: s.Limit, Scope: rule.ScopeFleet,
		Fleet: rule.Fleet{Mode: s.Mode, OnOutage: s.OnOutage},
	}
}

const (
	ruleName = "quota"
	resource = "partner"
	appName  = "bench"
)

// isOverload tells whether the run has more demand than the limit and an undisturbed server.
func (s *scenario) isOverload() bool { return s.Load > 1 && s.Fault == nil }

// isSpare tells whether the run has less demand than the limit.
func (s *scenario) isSpare() bool { return s.Load < 1 }

// isQuiet tells whether the run needs so little of the machine that others may be made beside
// it.
func (s *scenario) isQuiet() bool { return s.Limit*s.Load <= 200 && s.Fault == nil }

// plan says which runs there are.
type plan struct {
	instances int
	duration  time.Duration
	seed      uint64
	log       bool
}

const overload, spare = 2, 0.8

// spareDuration is how long a run below the limit takes.
const spareDuration = 6 * time.Second

func (p *plan) scenarios() []scenario {
	var all []scenario
	add := func(s scenario) {
		s.Instances, s.Log = p.instances, p.log
		s.Seed = p.seed*1000 + uint64(len(all))
		all = append(all, s)
	}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare} {
		for _, limit := range limitsOf(mode) {
			for _, skewed := range []bool{false, true} {
				add(scenario{Mode: mode, Limit: limit, Load: overload, Skewed: skewed, Duration: p.duration})
			}
		}
	}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk} {
		for _, limit := range limitsOf(mode)[1:] {
			add(scenario{Mode: mode, Limit: limit, Load: spare, Duration: spareDuration})
		}
		if mode != fleet.ModeAsk {
			add(scenario{Mode: mode, Limit: 1000, Load: spare, Duration: spareDuration, Delay: 20 * time.Millisecond})
		}
	}
	for _, f := range faults() {
		for _, skewed := range []bool{false, true} {
			add(scenario{
				Mode: fleet.ModeLease, OnOutage: fleet.OutageLast, Limit: 1000, Load: overload, Skewed: skewed,
				Duration: f.at + f.lasts + afterFault, Fault: &f,
			})
		}
	}
	for _, outage := range []fleet.OnOutage{fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed} {
		killed := faults()[0]
		add(scenario{
			Mode: fleet.ModeLease, OnOutage: outage, Limit: 1000, Load: overload,
			Duration: killed.at + killed.lasts + afterFault, Fault: &killed,
		})
	}
	for _, skewed := range []bool{false, true} {
		killed := faults()[0]
		add(scenario{
			Mode: fleet.ModeWindow, OnOutage: fleet.OutageLast, Limit: 1000, Load: overload, Skewed: skewed,
			Duration: killed.at + killed.lasts + afterFault, Fault: &killed,
		})
	}
	return all
}

// limitsOf returns the limits that a mode is measured at, in calls per second. Asking for each
// of 200,000 calls a second is more than a server can answer; and how the limit is shared by
// demand does not depend on it.
func limitsOf(mode fleet.Mode) []float64 {
	switch mode {
	case fleet.ModeAsk:
		return []float64{10, 100, 1000}
	case fleet.ModeShare:
		return []float64{1000}
	default:
		return []float64{10, 100, 1000, 100_000}
	}
}

// groups returns the runs in their order, quiet ones of the same length in groups.
func groups(scenarios []scenario) [][]scenario {
	const most = 4
	var all [][]scenario
	quiet := make(map[time.Duration]int) // where in all the group is that is not full
	for _, s := range scenarios {
		at, ok := quiet[s.Duration]
		if !s.isQuiet() || !ok || len(all[at]) == most {
			all = append(all, nil)
			at = len(all) - 1
		}
		all[at] = append(all[at], s)
		if s.isQuiet() {
			quiet[s.Duration] = at
		}
	}
	return all
}
