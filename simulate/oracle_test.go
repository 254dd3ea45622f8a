package simulate_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/simulate"
)

// The oracle decides on calls by the textbook: each algorithm is written anew
// from its formula, as plainly as can be, on whole nanoseconds. It shares no
// code with what it judges.

// offer is a call as the oracle sees it.
type offer struct {
	at       int64 // nanoseconds
	resource string
	origin   string
	tokens   int64
}

// verdict is what becomes of it.
type verdict struct {
	passed bool
	wait   int64 // nanoseconds until that was clear
	rule   string
}

// counter is a window: it has room for tokens or not.
type counter interface {
	hasRoom(now, tokens int64) bool
	count(now, tokens int64)
}

// pacer is a bucket or a throttle: the next call's turn is at an instant.
type pacer interface {
	turn(since, tokens int64) (at int64, ever bool) // of a call that is next since an instant
	grant(turn, tokens int64)
	clone() pacer
}

// oracle runs calls through rules.
type oracle struct {
	rules    []flow.Rule // complete
	counters map[string]counter
	lines    map[string]*oracleLine
	verdicts []verdict
	offers   []offer
}

// oracleLine is a pacer and those who wait for it, first come, first served.
type oracleLine struct {
	rule    flow.Rule
	pacer   pacer
	waiting []*oracleCall
	since   int64 // when the first became the first
}

type oracleCall struct {
	offer
	index int
	taken []grant // turns that were granted
}

type grant struct {
	line   *oracleLine
	before pacer
}

// judge returns what becomes of the calls, which are in order of arrival.
func judge(rules []flow.Rule, offers []offer) []verdict {
	o := &oracle{counters: map[string]counter{}, lines: map[string]*oracleLine{}, offers: offers}
	for _, rule := range rules {
		o.rules = append(o.rules, rule.WithDefaults())
	}
	o.verdicts = make([]verdict, len(offers))
	for i, call := range offers {
		o.serveUntil(call.at)
		o.goOn(&oracleCall{offer: call, index: i}, call.at)
	}
	o.serveUntil(1 << 62)
	return o.verdicts
}

// serveUntil lets every turn that falls due by then be taken, in order; of those
// at the same instant, the one that was known first comes first.
func (o *oracle) serveUntil(end int64) {
	for {
		var waiting []*oracleLine
		for _, line := range o.lines {
			if len(line.waiting) > 0 && line.headTurn() <= end {
				waiting = append(waiting, line)
			}
		}
		if len(waiting) == 0 {
			return
		}
		next := slices.MinFunc(waiting, func(a, b *oracleLine) int {
			return cmp.Or(
				cmp.Compare(a.headTurn(), b.headTurn()),
				cmp.Compare(max(a.since, a.waiting[0].at), max(b.since, b.waiting[0].at)),
				cmp.Compare(a.waiting[0].index, b.waiting[0].index),
			)
		})
		call, due := next.waiting[0], next.headTurn()
		next.waiting = next.waiting[1:]
		next.grantTo(call, due)
		next.since = due
		o.goOn(call, due)
	}
}

func (l *oracleLine) headTurn() int64 {
	head := l.waiting[0]
	at, _ := l.pacer.turn(max(l.since, head.at), head.tokens)
	return at
}

func (l *oracleLine) grantTo(call *oracleCall, turn int64) {
	call.taken = append(call.taken, grant{line: l, before: l.pacer.clone()})
	l.pacer.grant(turn, call.tokens)
}

// goOn takes a call through the rules that it has not passed yet.
func (o *oracle) goOn(call *oracleCall, now int64) {
	for _, rule := range o.applying(call.offer) {
		if !isPaced(rule) || call.has(o.line(rule, call.resource)) {
			continue
		}
		line := o.line(rule, call.resource)
		turn, ever := line.turnOf(call, now)
		switch {
		case !ever || turn-now > int64(rule.MaxWait):
			if warm, ok := line.pacer.(*warmThrottle); ok {
				warm.refused += float64(call.tokens)
			}
			o.refuse(call, now, rule)
			return
		case turn > now || len(line.waiting) > 0:
			if len(line.waiting) == 0 {
				line.since = now
			}
			line.waiting = append(line.waiting, call)
			return
		}
		line.grantTo(call, now)
	}
	for _, rule := range o.applying(call.offer) {
		if !isPaced(rule) && !o.counter(rule, call.resource).hasRoom(now, call.tokens) {
			o.refuse(call, now, rule)
			return
		}
	}
	o.pass(call, now)
}

// turnOf returns the turn that a call would get that comes now.
func (l *oracleLine) turnOf(call *oracleCall, now int64) (turn int64, ever bool) {
	if len(l.waiting) == 0 {
		return l.pacer.turn(now, call.tokens)
	}
	ahead, since := l.pacer.clone(), l.since
	if warm, ok := ahead.(*warmThrottle); ok {
		ahead = warm.plan()
	}
	for _, w := range l.waiting {
		at, _ := ahead.turn(max(since, w.at), w.tokens)
		ahead.grant(at, w.tokens)
		since = at
	}
	return ahead.turn(max(since, now), call.tokens)
}

func (c *oracleCall) has(line *oracleLine) bool {
	return slices.ContainsFunc(c.taken, func(g grant) bool { return g.line == line })
}

// refuse gives back what the call has taken. Nobody has taken anything of it
// since: that is what tests with several pacers are to see to.
func (o *oracle) refuse(call *oracleCall, now int64, rule flow.Rule) {
	o.verdicts[call.index] = verdict{wait: now - call.at, rule: rule.Name}
	for _, g := range slices.Backward(call.taken) {
		g.line.pacer = g.before
	}
}

func (o *oracle) pass(call *oracleCall, now int64) {
	o.verdicts[call.index] = verdict{passed: true, wait: now - call.at}
	for _, rule := range o.applying(call.offer) {
		if !isPaced(rule) && rule.Related == "" {
			o.counter(rule, call.resource).count(now, call.tokens)
		}
	}
	for _, rule := range o.rules {
		if rule.Related == call.resource {
			o.counter(rule, rule.Resource).count(now, call.tokens)
		}
	}
}

// applying returns the enforced rules for a call. Patterns of tests are "*".
func (o *oracle) applying(call offer) (rules []flow.Rule) {
	named := func(origin string) bool {
		return origin != "" && slices.ContainsFunc(o.rules, func(r flow.Rule) bool {
			return r.Origin == origin && (r.Resource == call.resource || r.Match != "")
		})
	}
	for _, rule := range o.rules {
		onResource := rule.Resource == call.resource || rule.Match == "*"
		ofOrigin := rule.Origin == "" || rule.Origin == call.origin || rule.Origin == flow.OtherOrigins && !named(call.origin)
		if onResource && ofOrigin && !rule.Shadow {
			rules = append(rules, rule)
		}
	}
	return rules
}

func isPaced(rule flow.Rule) bool {
	return rule.Control == flow.Throttle || rule.Algorithm == flow.TokenBucket
}

func stateKey(rule flow.Rule, resource string) string {
	if rule.Match != "" && !rule.Shared {
		return rule.Name + "\x00" + resource
	}
	return rule.Name
}

func (o *oracle) counter(rule flow.Rule, resource string) counter {
	key := stateKey(rule, resource)
	if o.counters[key] == nil {
		o.counters[key] = newCounter(rule)
	}
	return o.counters[key]
}

func (o *oracle) line(rule flow.Rule, resource string) *oracleLine {
	key := stateKey(rule, resource)
	if o.lines[key] == nil {
		o.lines[key] = &oracleLine{rule: rule, pacer: newPacer(rule)}
	}
	return o.lines[key]
}

// offersOf returns the calls of a load in the order of their arrival.
func offersOf(load simulate.Load, end time.Duration) (offers []offer) {
	for _, s := range load.Streams {
		one := offer{resource: s.Resource, origin: s.Origin, tokens: int64(max(1, s.Tokens))}
		for _, at := range s.Times {
			if at < end {
				one.at = int64(at)
				offers = append(offers, one)
			}
		}
		if len(s.Times) > 0 {
			continue
		}
		until := int64(end)
		if s.Until > 0 {
			until = min(until, int64(s.Until))
		}
		for k := 0.0; ; k++ {
			one.at = int64(s.From) + int64(math.Round(k*1e9/s.Rate))
			if one.at >= until {
				break
			}
			offers = append(offers, one)
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.at, b.at) })
	return offers
}
