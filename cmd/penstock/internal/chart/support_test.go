package chart_test

import (
	"math"

	"github.com/penstock-go/penstock/simulate"
)

// rows makes the seconds of resources, of what a function says of each.
func rows(seconds int, resources []string, of func(second, resource int) simulate.Second) []simulate.Second {
	var all []simulate.Second
	for second := range seconds {
		for i, name := range resources {
			s := of(second, i)
			s.Second, s.Resource = second, name
			all = append(all, s)
		}
	}
	return all
}

// one is a second with what was offered and passed; the rest was blocked. The
// ceiling NaN is none.
func one(offered, passed int, ceiling float64) simulate.Second {
	s := simulate.Second{Offered: offered, Passed: passed, Blocked: offered - passed}
	if !math.IsNaN(ceiling) {
		s.Ceiling = &ceiling
	}
	return s
}

// scenes are results to draw.
func scenes() map[string]simulate.Result {
	results := map[string]simulate.Result{"breaker": breaker(), "adaptive": adaptive(), "fleet": fleet()}
	for name, seconds := range scenesOfSeconds() {
		results[name] = simulate.Result{Seconds: seconds}
	}
	return results
}

// breaker is a resource whose calls fail from 5 s to 12 s under a breaker, and one
// without states.
func breaker() simulate.Result {
	change := func(t float64, rule, from, to string) simulate.StateChange {
		return simulate.StateChange{T: t, Resource: "pay", Rule: rule, Kind: "breaker", From: from, To: to}
	}
	return simulate.Result{
		Seconds: rows(20, []string{"free", "pay"}, func(second, resource int) simulate.Second {
			s := one(100, 100, math.NaN())
			switch {
			case resource == 0:
				return s
			case second < 5 || second >= 14:
				s.InFlight = 4
			case second == 5:
				s.Passed, s.Blocked, s.Failed, s.InFlight = 40, 60, 40, 12
			default:
				s.Passed, s.Blocked, s.Failed = 0, 100, 0
			}
			s.Completed = s.Passed
			return s
		}),
		States: []simulate.StateChange{
			change(5.4, "pay-errors", "closed", "open"),
			change(6, "pay-slow", "closed", "halfOpen"),
			change(10.4, "pay-errors", "open", "halfOpen"),
			change(10.4, "pay-errors", "halfOpen", "open"),
			change(12, "pay-slow", "halfOpen", "strange<state>"),
			change(14, "pay-errors", "open", "closed"),
			change(30, "pay-slow", "strange<state>", "closed"),
		},
	}
}

// adaptive is two resources under a limit that they share, which goes down from 20 to 8,
// and a rule on one of them that has no limit.
func adaptive() simulate.Result {
	result := simulate.Result{
		Seconds: rows(20, []string{"a", "b"}, func(second, _ int) simulate.Second {
			s := one(100+200*min(1, second/5), 100, math.NaN())
			s.InFlight = 4 + second/5
			return s
		}),
	}
	cpu := 0.2
	for second := range 20 {
		t, limit, cpu := float64(second), max(8, float64(20-second)), min(1, cpu+float64(second)/10)
		shared := simulate.Limit{T: t, Rule: "all", Kind: "adaptive", Resource: "*", Limit: &limit, InFlight: min(8, second)}
		if second >= 5 {
			shared.Queued, shared.Shed = 3, map[string]int{"low": 150, "normal": second}
		}
		own := simulate.Limit{T: t, Rule: "own", Kind: "adaptive", Resource: "a", InFlight: 2}
		result.Limits = append(result.Limits, shared, own)
		result.Signals = append(result.Signals,
			simulate.SignalValue{T: t, Signal: "cpu", Value: &cpu}, simulate.SignalValue{T: t, Signal: "memory"})
	}
	return result
}

// fleet is fifty instances under a limit that they share, whose backend is away from 5 s to
// 7 s and once for a moment. On some of them a breaker opens.
func fleet() simulate.Result {
	limit := 1000.0
	result := simulate.Result{
		Seconds: rows(12, []string{"call"}, func(second, _ int) simulate.Second {
			return one(2000, 1000-10*(second%3), limit)
		}),
		Outages: []simulate.OutageSpan{{From: 5, Until: 7, Empty: true}, {From: 9.2, Until: 9.3}, {From: 20, Until: 30}},
	}
	for second, of := range result.Seconds {
		connected, unanswered := 50, 0
		if second == 5 || second == 6 {
			connected, unanswered = 0, 500
		}
		result.Fleet = append(result.Fleet, simulate.FleetSecond{
			T: float64(second), Rule: "quota", Kind: "flow", Resource: "call", Limit: &limit,
			Passed: of.Passed, Refused: of.Blocked, Least: 18, Most: 25 + second%2, Connected: connected,
		})
		result.Backend = append(result.Backend, simulate.BackendSecond{
			T: float64(second), Requests: 600 - unanswered/2, RoundTrips: 650, Unanswered: unanswered,
		})
	}
	for i := range 6 {
		result.States = append(result.States, simulate.StateChange{
			T: 1.5 + float64(i), Resource: "call", Rule: "errors", Kind: "breaker", From: "closed", To: "open", Instance: i + 1,
		})
	}
	for i := range 6 {
		result.States = append(result.States, simulate.StateChange{
			T: 8 + float64(i)/10, Resource: "call", Rule: "errors", Kind: "breaker", From: "open", To: "closed", Instance: i + 1,
		})
	}
	return result
}

func scenesOfSeconds() map[string][]simulate.Second {
	none := math.NaN()
	warm := []int{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	long := "a name that is longer than any chart is wide: " + "GET /orders/{id}/lines/{line}/parcels/{parcel}/track"
	return map[string][]simulate.Second{
		"warmup": rows(20, []string{"orders:create"}, func(second, _ int) simulate.Second {
			return one(2000, warm[second], float64(warm[second])+0.4)
		}),
		"resources": rows(60, []string{"carts", "free", `<GET> "/a" & b` + "\x1b[31m", long, "stock"}, func(second, resource int) simulate.Second {
			offered := 40 + second*(resource+1)%60
			if resource == 1 {
				return one(offered, offered, none)
			}
			return one(offered, min(offered, 50+10*resource), float64(50+10*resource))
		}),
		"short":    rows(3, []string{"r"}, func(second, _ int) simulate.Second { return one(5-second, 2, 2.5) }),
		"zero":     rows(5, []string{"r"}, func(int, int) simulate.Second { return one(0, 0, none) }),
		"blocked":  rows(5, []string{"r"}, func(int, int) simulate.Second { return one(4, 0, 0) }),
		"million":  rows(30, []string{"r"}, func(second, _ int) simulate.Second { return one(1_000_000, 900_000-second*9000, 900_000) }),
		"fraction": rows(12, []string{"r"}, func(second, _ int) simulate.Second { return one(1, 1-second%2, 0.5) }),
		"offscale": rows(12, []string{"r"}, func(int, int) simulate.Second { return one(10, 10, 5000) }),
		"waits": rows(9, []string{"r"}, func(second, _ int) simulate.Second {
			s := one(0, 0, 10)
			s.Passed, s.Waited = 10, 10
			if second%4 == 0 {
				s.Offered, s.Waited = 40, 9
			}
			return s
		}),
		"long": rows(900, []string{"r"}, func(second, _ int) simulate.Second {
			offered := 500 + int(400*math.Sin(float64(second)/60))
			return one(offered, min(offered, 600), 600)
		}),
		"nothing": nil,
	}
}
