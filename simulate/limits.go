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
func (l *limits) beginSecond(engine *core.Engine, t float64, last bool) {
	begun := len(l.rows)
	for resource, state := range engine.RuleStates(func(r rule.Rule) bool { return r.Type().LimitMoves() }) {
		l.observe(resource, &state, t, last)
	}
	slices.SortFunc(l.rows[begun:], func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Resource, b.Resource))
	})
	for i := begun; i < len(l.rows); i++ {
		row := &l.rows[i]
		l.current[limiterKey{rule.Key{Kind: rule.Kind(row.Kind), Name: row.Rule}, row.Resource}].row = i
	}
	if last {
		return
	}
	for _, signal := range engine.Status().Signals {
		value := &signal.Value
		if signal.Err != nil {
			value = nil
		}
		l.signals = append(l.signals, SignalValue{T: t, Signal: string(signal.Signal), Value: value})
	}
}

// observe completes the row of a limiter and begins the next one.
func (l *limits) observe(resource string, state *core.RuleSnapshot, t float64, last bool) {
	key := limiterKey{rule.Key{Kind: state.Kind, Name: state.Name}, resource}
	of := l.current[key]
	if of == nil {
		of = &limitState{row: -1, shed: make(map[string]float64)}
		l.current[key] = of
	}
	next := Limit{T: t, Rule: state.Name, Kind: string(state.Kind), Resource: resource, Shed: make(map[string]int)}
	for i, gauge := range state.Rule.Type().Gauges() {
		value := state.Gauges[i]
		if math.IsNaN(value) {
			continue
		}
		switch gauge.Name {
		case gaugeLimit:
			next.Limit = pointerTo(value)
		case gaugeInFlight:
			next.InFlight = int(value)
		case gaugeQueued:
			next.Queued = int(value)
		case gaugeShed:
			if before := of.shed[gauge.LabelValue]; of.row >= 0 && value > before {
				l.rows[of.row].Shed[gauge.LabelValue] = int(value - before)
			}
			of.shed[gauge.LabelValue] = value
		}
	}
	if !last {
		l.rows = append(l.rows, next)
	}
}
