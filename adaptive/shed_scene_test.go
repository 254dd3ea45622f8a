package adaptive_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// epoch is the start of a second, at which tests begin.
const epoch = clock.Instant(1_700_000_000 * int64(time.Second))

// limiter is what the engine finds in the limiters of these strategies.
type limiter interface {
	rule.Finisher
	rule.Activator
}

// scene is a limiter and the calls to it, on a time that the test moves.
type scene struct {
	t        testing.TB
	rule     adaptive.Rule
	limiter  limiter
	version  uint64
	now      clock.Instant
	readings signals
	passing  float64 // calls in a second, of late
}

func newScene(t testing.TB, r adaptive.Rule) *scene {
	t.Helper()
	if r.Resource == "" && r.Match == "" && !r.Inbound {
		r.Resource = "r"
	}
	require.Empty(t, adaptive.Kind().Faults(r))
	s := &scene{t: t, rule: r, version: 1, now: epoch, readings: signals{}}
	s.limiter = adaptive.Kind().Of(adaptive.Kind().WithDefaults(r)).NewLimiter(s.env()).(limiter)
	return s
}

func (s *scene) env() rule.Env {
	return rule.Env{Version: s.version, Now: s.now, Signals: s.readings, Seed: 1, Changed: func(clock.Instant, string, string, string) {}}
}

// adopt makes another version of the rule, which is not activated yet.
func (s *scene) adopt(change func(*adaptive.Rule)) {
	s.t.Helper()
	change(&s.rule)
	require.Empty(s.t, adaptive.Kind().Faults(s.rule))
	s.version++
	s.limiter = adaptive.Kind().Of(adaptive.Kind().WithDefaults(s.rule)).Adopt(s.limiter, s.env()).(limiter)
}

func (s *scene) signal(of rule.Signal, value float64) { s.readings.Reading(of).Store(value) }

func (s *scene) request(p rule.Priority, caller string) rule.Call {
	c := rule.Call{Now: s.now, Tokens: 1}
	if caller != "" {
		c.Attribute = rule.String(caller)
	}
	c.SetCaller(p, true)
	return c
}

// passes says whether a call passes now, and ends it at once if it does.
func (s *scene) passes() bool {
	ticket, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
	if decision == rule.Pass {
		s.limiter.GiveBack(s.now, ticket, 1)
	}
	return decision == rule.Pass
}

// gauge returns the value of a gauge, of the labelled ones that of a label.
func (s *scene) gauge(name string, label ...string) float64 {
	s.t.Helper()
	gauges := adaptive.Kind().Gauges()
	status := s.limiter.Status(s.now)
	require.LessOrEqual(s.t, len(status.Gauges), len(gauges))
	for i, g := range gauges[:len(status.Gauges)] {
		if g.Name == name && (len(label) == 0 || g.LabelValue == label[0]) {
			return status.Gauges[i]
		}
	}
	require.Failf(s.t, "no such gauge", "%s %v", name, label)
	return math.NaN()
}

// stream is calls that come at even distances, and take so long when they pass.
type stream struct {
	rate     float64
	priority rule.Priority
	callers  int // 0: callers are not known
	takes    time.Duration
	fails    bool
}

// outcome is what became of the calls of a stream.
type outcome struct{ arrived, passed int }

func (o outcome) share() float64 { return float64(o.passed) / float64(o.arrived) }

// underWay is a call that passed.
type underWay struct {
	ticket rule.Ticket
	exit   rule.Exit
}

// run has the streams call for so long. Each step of a millisecond it calls the function,
// which may set signals, with how many calls have passed of late in a second.
func (s *scene) run(d time.Duration, each func(passing float64), streams ...stream) []outcome {
	outcomes := make([]outcome, len(streams))
	var ends endQueue
	owed := make([]float64, len(streams))
	for range d / time.Millisecond {
		s.now = s.now.Add(time.Millisecond)
		for len(ends) > 0 && ends[0].exit.Now <= s.now {
			e := ends.pop()
			s.limiter.Done(e.ticket, e.exit)
		}
		s.passing -= s.passing / 250
		for i, of := range streams {
			for owed[i] += of.rate / 1000; owed[i] >= 1; owed[i]-- {
				caller := ""
				if of.callers > 0 {
					caller = fmt.Sprintf("caller-%d", outcomes[i].arrived*7%of.callers)
				}
				outcomes[i].arrived++
				ticket, decision := s.limiter.Acquire(s.request(of.priority, caller))
				if decision != rule.Pass {
					continue
				}
				outcomes[i].passed++
				s.passing += 4
				ends.push(underWay{ticket, rule.Exit{Start: s.now, Now: s.now.Add(of.takes), Failed: of.fails}})
			}
		}
		if each != nil {
			each(s.passing)
		}
	}
	for _, e := range ends {
		s.limiter.Done(e.ticket, rule.Exit{Start: e.exit.Start, Now: s.now, Ignored: true})
	}
	return outcomes
}

// endQueue is calls under way, the one that ends first at the front.
type endQueue []underWay

func (q *endQueue) push(u underWay) {
	i := len(*q)
	for *q = append(*q, u); i > 0 && (*q)[i-1].exit.Now > u.exit.Now; i-- {
		(*q)[i] = (*q)[i-1]
	}
	(*q)[i] = u
}

func (q *endQueue) pop() underWay {
	first := (*q)[0]
	*q = (*q)[1:]
	return first
}
