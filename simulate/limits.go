package simulate

import (
	"cmp"
	"math"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// limits are the rows of rules that find their limits themselves while they are made.
type limits struct {
	rows    []Limit
	signals []SignalValue

	current map[limiterKey]*limitState // of each limiter
}

// limiterKey tells limiters apart.
type limiterKey struct {
	key      rule.Key
	resource string
}

// limitState is what is known of a limiter.
type limitState struct {
	row  int                // of the present second; -1 if there is none
	shed map[string]float64 // calls refused so far, by priority
}

func newLimits() limits {
	return limits{rows: []Limit{}, current: make(map[limiterKey]*limitState)}
}

// The gauges that rules with moving limits have. Those of the last two are optional.
const (
	gaugeLimit    = "limit"
	gaugeInFlight = "in_flight"
	gaugeQueued   = "queued"
	gaugeShed     = "shed" // a counter by priority
)

// beginSecond completes the rows of the second before and begins those of the next,
// unless there is none.
func (l *limits) beginSecond(instances []*instance, t float64, last bool) {
	begun := len(l.rows)
	for key, sum := range sumLimits(instances) {
		l.observe(key, sum, t, last)
	}
	slices.SortFunc(l.rows[begun:], func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Resource, b.Resource))
	})
	for i := begun; i < len(l.rows); i++ {
		row := &l.rows[i]
		l.current[limiterKey{rule.Key{Kind: rule.Kind(row.Kind), Name: row.Rule}, row.Resource}].row = i
	}
	if !last {
		l.sampleSignals(instances, t)
	}
}

// sampleSignals adds what signals show, on average over the instances that can read them.
func (l *limits) sampleSignals(instances []*instance, t float64) {
	begun := len(l.signals)
	var sums, counts []float64
	for _, instance := range instances {
		for i, signal := range instance.engine.Status().Signals { // the same on all instances
			if i == len(sums) {
				sums, counts = append(sums, 0), append(counts, 0)
				l.signals = append(l.signals, SignalValue{T: t, Signal: string(signal.Signal)})
			}
			if signal.Err == nil {
				sums[i], counts[i] = sums[i]+signal.Value, counts[i]+1
			}
		}
	}
	for i, sum := range sums {
		if counts[i] > 0 {
			l.signals[begun+i].Value = pointerTo(sum / counts[i])
		}
	}
}

// limitSum is what the limiters of a rule show, all instances together.
type limitSum struct {
	limit            *float64
	inFlight, queued int
	shed             map[string]float64 // calls refused so far, by priority
}

// sumLimits returns what the limiters of rules with moving limits show.
func sumLimits(instances []*instance) map[limiterKey]*limitSum {
	sums := make(map[limiterKey]*limitSum)
	for _, i := range instances {
		for resource, state := range i.engine.RuleStates(func(r rule.Rule) bool { return r.Type().LimitMoves() }) {
			key := limiterKey{rule.Key{Kind: state.Kind, Name: state.Name}, resource}
			if sums[key] == nil {
				sums[key] = &limitSum{shed: make(map[string]float64)}
			}
			sums[key].add(&state)
		}
	}
	return sums
}

func (l *limitSum) add(state *core.RuleSnapshot) {
	for i, gauge := range state.Rule.Type().Gauges() {
		value := state.Gauges[i]
		if math.IsNaN(value) {
			continue
		}
		switch gauge.Name {
		case gaugeLimit:
			if l.limit == nil {
				l.limit = new(float64)
			}
			*l.limit += value
		case gaugeInFlight:
			l.inFlight += int(value)
		case gaugeQueued:
			l.queued += int(value)
		case gaugeShed:
			l.shed[gauge.LabelValue] += value
		}
	}
}

// observe completes the row of a limiter and begins the next one.
func (l *limits) observe(key limiterKey, sum *limitSum, t float64, last bool) {
	of := l.current[key]
	if of == nil {
		of = &limitState{row: -1}
		l.current[key] = of
	}
	for priority, value := range sum.shed {
		if before := of.shed[priority]; of.row >= 0 && value > before {
			l.rows[of.row].Shed[priority] = int(value - before)
		}
	}
	of.shed = sum.shed
	if !last {
		l.rows = append(l.rows, Limit{
			T: t, Rule: key.key.Name, Kind: string(key.key.Kind), Resource: key.resource,
			Limit: sum.limit, InFlight: sum.inFlight, Queued: sum.queued, Shed: make(map[string]int),
		})
	}
}
