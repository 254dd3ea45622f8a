package overload

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// outcome is what became of the calls of one run.
type outcome struct {
	service  service
	load     simulate.Load
	duration time.Duration
	classes  []string       // names of resources
	class    map[string]int // their indexes
	patience []float64      // of the clients of each class, in seconds
	calls    []call         // in the order in which they were refused or ended
	result   simulate.Result
}

func newOutcome(s scenario, load simulate.Load) *outcome {
	o := &outcome{service: s.service, load: load, duration: s.duration, classes: s.classNames(), class: make(map[string]int)}
	o.calls = make([]call, 0, int(1.1*s.expectedCalls())) // retries make more
	for i, name := range o.classes {
		o.class[name] = i
	}
	o.patience = patience(load, o.classes)
	return o
}

// call is what became of one call. Times are in seconds.
type call struct {
	arrived, ended float64 // a refused call ends when it is refused
	waited         float64 // for rules
	class          int
	priority       string
	refused        bool
	good           bool // it ended well, before its client gave up
}

// add records a call.
func (o *outcome) add(e simulate.Event) {
	c := call{
		arrived: e.T, ended: e.T + e.Wait, waited: e.Wait,
		class: o.class[e.Resource], priority: e.Priority, refused: e.Outcome == simulate.Block,
	}
	if !c.refused {
		c.ended = *e.End
		c.good = !e.Failed && c.took() <= o.patience[c.class]
	}
	o.calls = append(o.calls, c)
}

// took returns how long the client waited.
func (c call) took() float64 { return c.ended - c.arrived }

// span is a part of a run. The end is not included.
type span struct{ from, to time.Duration }

func (s span) includes(t float64) bool { return t >= s.from.Seconds() && t < s.to.Seconds() }

func (s span) seconds() float64 { return (s.to - s.from).Seconds() }

// from returns the part from a time on.
func (o *outcome) from(t time.Duration) span { return span{t, o.duration} }

// goodput returns how many calls per second ended well.
func (o *outcome) goodput(in span) float64 {
	count := 0
	for _, c := range o.calls {
		if c.good && in.includes(c.ended) {
			count++
		}
	}
	return float64(count) / in.seconds()
}

// share returns the share of the calls arriving in a span for which is holds.
func (o *outcome) share(in span, is func(call) bool) float64 { return o.shareOf(in, anyCall, is) }

func anyCall(call) bool { return true }

// shareOf returns the share of some of the calls arriving in a span for which is holds.
func (o *outcome) shareOf(in span, of, is func(call) bool) float64 {
	count, all := 0, 0
	for _, c := range o.calls {
		if !in.includes(c.arrived) || !of(c) {
			continue
		}
		if all++; is(c) {
			count++
		}
	}
	return float64(count) / float64(all)
}

func isRefused(c call) bool { return c.refused }

// isLost says that a call was refused, failed or came too late.
func isLost(c call) bool { return !c.good }

// latency returns the given percentile, in seconds, of how long clients waited for the
// calls that ended in a span and were not refused; NaN if there are none.
func (o *outcome) latency(in span, percent float64) float64 { return o.latencyOf(in, anyCall, percent) }

// latencyOf is latency of some of the calls.
func (o *outcome) latencyOf(in span, of func(call) bool, percent float64) float64 {
	var took []float64
	for _, c := range o.calls {
		if !c.refused && in.includes(c.ended) && of(c) {
			took = append(took, c.took())
		}
	}
	return percentile(took, percent)
}

// waits returns the given percentile, in seconds, of how long the calls that arrived in a span waited for rules, those
// that were refused included; NaN if there are none.
func (o *outcome) waits(in span, of func(call) bool, percent float64) float64 {
	var waits []float64
	for _, c := range o.calls {
		if in.includes(c.arrived) && of(c) {
			waits = append(waits, c.waited)
		}
	}
	return percentile(waits, percent)
}

// percentile returns the given percentile of some values, which it sorts; NaN if there are none.
func percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[int(math.Ceil(float64(len(values))*percent/100))-1]
}

// The measures below are what goals are about.

// refused measures the share of calls that were refused.
func refused(o *outcome) float64 { return o.share(o.from(0), isRefused) }

// lost measures the share of calls that were refused or too late from a time on.
func lost(from time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.share(o.from(from), isLost) }
}

// goodput measures the share of the capacity that does something useful.
func goodput(from, to time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.goodput(span{from, to}) / o.service.capacity() }
}

// useful measures the share of the calls arriving in a span that end well.
func useful(from, to time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 { return 1 - o.share(span{from, to}, isLost) }
}

// p99 measures the 99th percentile of what clients wait, in seconds.
func p99(from, to time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 { return o.latency(span{from, to}, 99) }
}

// worstSecond measures the lowest goodput of any second, as a share of the capacity.
func worstSecond(from, to time.Duration) func(*outcome) float64 {
	return func(o *outcome) float64 {
		worst := math.Inf(1)
		for t := from; t+time.Second <= to; t += time.Second {
			worst = min(worst, o.goodput(span{t, t + time.Second}))
		}
		return worst / o.service.capacity()
	}
}

// settled measures how long after a step the 90th percentile of a quarter of a second is
// above a bound for the last time, in seconds.
func settled(from time.Duration, below time.Duration) func(*outcome) float64 {
	const quarter = time.Second / 4
	return func(o *outcome) float64 {
		last := 0.0
		for t := from; t+quarter <= o.duration; t += quarter {
			if o.latency(span{t, t + quarter}, 90) > below.Seconds() {
				last = (t + quarter - from).Seconds()
			}
		}
		return last
	}
}

// served measures the share of the calls of a priority arriving in a span that end well.
func served(p rule.Priority, from, to time.Duration) func(*outcome) float64 {
	priority := p.String()
	return func(o *outcome) float64 {
		good, all := 0, 0
		for _, c := range o.calls {
			if c.priority != priority || !(span{from, to}).includes(c.arrived) {
				continue
			}
			if all++; c.good {
				good++
			}
		}
		return float64(good) / float64(all)
	}
}
