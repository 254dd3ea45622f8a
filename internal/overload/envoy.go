package overload

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// envoyRule limits calls under way as the gradient controller of Envoy's adaptive
// concurrency filter does, with the values of its documentation. It is here to be compared
// with.
type envoyRule struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
}

// The values of Envoy: of its documentation where it has no defaults.
const (
	envoyUpdate      = 100 * time.Millisecond // concurrency_update_interval
	envoyRecalculate = 60 * time.Second       // min_rtt_calc_params.interval
	envoySamples     = 50                     // min_rtt_calc_params.request_count
	envoyBuffer      = 0.25                   // min_rtt_calc_params.buffer
	envoyLeast       = 3                      // min_rtt_calc_params.min_concurrency
	envoyMost        = 1000                   // max_concurrency_limit
	envoyAtLeast     = 5                      // updates in a row at the least limit after which the minimum is measured
)

func envoyKind() *rule.Type[envoyRule] {
	common := func(r *envoyRule) rule.Common {
		return rule.Common{Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow}
	}
	return rule.Define(rule.Spec[envoyRule]{
		Kind: "envoy", Phase: rule.PhaseOverload, Reason: rule.Overloaded, Common: common,
		Gauges:     []rule.Gauge{{Name: "limit"}, {Name: "in_flight"}},
		LimitMoves: true,
		New:        func(*envoyRule, rule.Env) rule.Limiter { return &envoy{limit: envoyLeast, measuring: true} },
	})
}

// envoy is used by one goroutine.
type envoy struct {
	limit    float64
	inFlight int
	samples  []time.Duration // of the present window

	minimum   time.Duration // response time, by the median
	measuring bool          // the minimum, at the least limit
	measured  clock.Instant // when that ended
	before    float64       // the limit before it began
	updated   clock.Instant
	atLeast   int
}

func (e *envoy) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	e.update(c.Now)
	if float64(e.inFlight) >= e.limit {
		return 0, rule.Block
	}
	e.inFlight++
	return 0, rule.Pass
}

func (e *envoy) GiveBack(clock.Instant, rule.Ticket, int32) { e.inFlight-- }

func (e *envoy) Done(_ rule.Ticket, exit rule.Exit) {
	e.inFlight--
	e.samples = append(e.samples, exit.Took())
	e.update(exit.Now)
}

// update ends a window that is over.
func (e *envoy) update(now clock.Instant) {
	switch {
	case e.measuring && len(e.samples) >= envoySamples:
		e.minimum, e.measured, e.updated, e.measuring = e.median(), now, now, false
		e.limit = max(e.before, envoyLeast)
	case e.measuring || now.Sub(e.updated) < envoyUpdate:
	case now.Sub(e.measured) >= envoyRecalculate || e.atLeast >= envoyAtLeast:
		e.measuring, e.before, e.limit, e.atLeast = true, e.limit, envoyLeast, 0
		e.samples = e.samples[:0]
	default:
		e.updated = now
		if len(e.samples) > 0 {
			e.adjust()
		}
	}
}

// adjust sets the limit by the gradient: how much longer calls take than they need to.
func (e *envoy) adjust() {
	gradient := float64(e.minimum) * (1 + envoyBuffer) / float64(max(1, e.median()))
	limit := min(2, max(0.5, gradient)) * e.limit
	e.limit = math.Floor(min(envoyMost, max(envoyLeast, limit+math.Sqrt(limit))))
	if e.atLeast++; e.limit > envoyLeast {
		e.atLeast = 0
	}
}

// median returns the median of the window and begins the next.
func (e *envoy) median() time.Duration {
	slices.Sort(e.samples)
	median := e.samples[len(e.samples)/2]
	e.samples = e.samples[:0]
	return median
}

func (e *envoy) RetryAfter(rule.Call) time.Duration { return 0 }

func (e *envoy) Idle(clock.Instant) bool { return false }

func (e *envoy) Status(clock.Instant) rule.Status {
	return rule.Status{Gauges: []float64{e.limit, float64(e.inFlight)}}
}
