package adaptive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// The states of a rule with the strategy [Latency].
const (
	// Normal: nothing shows that the service is short of something, and no call is refused.
	Normal = "normal"
	// Limited: a shortage was shown, and what cannot be done in time is refused.
	Limited = "limited"
)

// maxNamed is how many resources a text names.
const maxNamed = 5

// noteState reports a change of state once groups have changed theirs.
func (o *overload) noteState(now clock.Instant) {
	state, because := Normal, ""
	for _, g := range o.inUse() {
		if g.control.Limited() {
			state, because = Limited, g.about()
			break
		}
	}
	if state == o.state {
		return
	}
	if o.env.Changed != nil {
		o.changes.Add(o.env.Changed, now, o.state, state, because)
	}
	o.state = state
}

// notes says of each group what is to be said: whether it is limited and why, and who went apart.
func (o *overload) notes() (notes []rule.Note) {
	for _, g := range o.inUse() {
		if text := g.about(); text != "" {
			notes = append(notes, rule.Note{Since: g.changedAt, Text: text})
		}
	}
	return notes
}

// about says in plain words whether the group is limited and by what evidence, who went apart in
// it, and whose calls are refused now.
func (g *group) about() string {
	var parts []string
	if g.index > 0 {
		parts = append(parts, namesOf(g.classes)+" went apart, slow while others are not")
	}
	if g.control.Limited() {
		parts = append(parts, fmt.Sprintf("limited to %d calls, as %s", g.limit, evidenceOf(g.control.Shortage())))
		if refused := g.refusedNow(); len(refused) > 0 {
			parts = append(parts, "refuses calls of "+namesOf(refused))
		}
	}
	return strings.Join(parts, "; ")
}

// refusedNow returns the classes of which calls of some priority are refused now.
func (g *group) refusedNow() (list []*class) {
	if word := g.word.Load(); word&full == 0 || word>>verdictShift&(1<<(2*levels)-1) == 0 {
		return nil
	}
	for _, c := range g.classes {
		if c.refuses.Load() != 0 && c.queued > 0 {
			list = append(list, c)
		}
	}
	return list
}

// namesOf names some classes.
func namesOf(classes []*class) string {
	var names []string
	for _, c := range classes {
		if c.name != "" {
			names = append(names, rule.Quote(c.name))
		}
	}
	if len(names) == 0 {
		return "the resource"
	}
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// evidenceOf says what showed a shortage.
func evidenceOf(s limit.Shortage) string {
	switch s.By {
	case limit.ByLimits:
		return fmt.Sprintf("with a limit of %.0f instead of %.0f calls took %s times as long", s.Limit, s.Lower, times(s.Slower))
	case limit.BySurge:
		return fmt.Sprintf("%.0f calls came in %v, where %.0f are usual, and calls took %s times as long as usual",
			s.Calls, s.Within.Round(time.Millisecond), s.Of, times(s.Slower))
	case limit.ByProcessor:
		return fmt.Sprintf("goroutines wait %v for a processor, and %.0f calls came in %v, where %.0f are usual",
			time.Duration(s.Delay*float64(time.Second)).Round(time.Millisecond), s.Calls, s.Within.Round(time.Millisecond), s.Of)
	case limit.ByEarlier:
		return fmt.Sprintf("as many calls ended as when it was limited before, and calls took %s times as long as usual", times(s.Slower))
	case limit.ByFailures:
		return fmt.Sprintf("clients gave up: %.0f of %.0f calls failed after a long time", s.Calls, s.Of)
	}
	return "more calls under way only took longer"
}

// times writes a factor.
func times(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// apartGauges returns the gauges of the groups of resources that went apart, in the order of the
// gauges of the kind.
func (o *overload) apartGauges(notThere float64) (values []float64) {
	for _, value := range []func(*group) float64{
		func(g *group) float64 { return float64(g.limit) },
		func(g *group) float64 { return float64(g.underWay()) },
		func(g *group) float64 { return float64(g.queue.total) },
		func(g *group) float64 {
			if g.control.Limited() {
				return 1
			}
			return 0
		},
	} {
		for _, g := range o.groups[1:] {
			if g == nil || len(g.classes) == 0 {
				values = append(values, notThere)
			} else {
				values = append(values, value(g))
			}
		}
	}
	return values
}
