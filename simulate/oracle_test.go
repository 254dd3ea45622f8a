package simulate_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// The oracle decides on calls by the textbook: each algorithm is written anew
// from its formula, as plainly as can be, on whole nanoseconds. It shares no
// code with what it tests.

// offer is a call for the oracle.
type offer struct {
	at       int64 // nanoseconds
	resource string
	origin   string
	tokens   int64
}

// verdict is the outcome of a call.
type verdict struct {
	passed bool
	wait   int64 // nanoseconds until then
	rule   string
}

// counter is a window: further tokens fit or not.
type counter interface {
	fits(now, tokens int64) bool
	count(now, tokens int64)
}

// schedule is a bucket or a throttle: it has a time for the next call, its slot.
type schedule interface {
	slot(since, tokens int64) (at int64, ever bool) // of a call that is next since an instant
	grant(slot, tokens int64)
	clone() schedule
}

// oracle runs calls through rules.
type oracle struct {
	rules    []flow.Rule // complete
	counters map[string]counter
	queues   map[string]*oracleQueue
	verdicts []verdict
	offers   []offer
}

// oracleQueue is a schedule and the calls that wait for it, first come, first served.
type oracleQueue struct {
	rule     flow.Rule
	schedule schedule
	waiting  []*oracleCall
	since    int64 // when the first became the first
	granted  int
}

type oracleCall struct {
	offer
	index    int
	joined   int64 // when it came to the queue where it waits
	deadline int64 // of that queue
	taken    []grant
}

// grant is a slot that a call has.
type grant struct {
	queue  *oracleQueue
	number int
	slot   int64
	before schedule
}

// decide returns the outcomes of calls, which are in order of arrival.
func decide(rules []flow.Rule, offers []offer) []verdict {
	o := &oracle{counters: map[string]counter{}, queues: map[string]*oracleQueue{}, offers: offers}
	for _, rule := range rules {
		o.rules = append(o.rules, flow.Kind().WithDefaults(rule))
	}
	o.verdicts = make([]verdict, len(offers))
	for i, call := range offers {
		o.serveUntil(call.at)
		o.goOn(&oracleCall{offer: call, index: i}, call.at)
	}
	o.serveUntil(1 << 62)
	return o.verdicts
}

// serveUntil lets calls take every slot up to an instant, in order; of slots at the
// same instant, the one that was known first comes first.
func (o *oracle) serveUntil(end int64) {
	for {
		var waiting []*oracleQueue
		for _, queue := range o.queues {
			if len(queue.waiting) > 0 && queue.headSlot() <= end {
				waiting = append(waiting, queue)
			}
		}
		if len(waiting) == 0 {
			return
		}
		next := slices.MinFunc(waiting, func(a, b *oracleQueue) int {
			return cmp.Or(
				cmp.Compare(a.headSlot(), b.headSlot()),
				cmp.Compare(max(a.since, a.waiting[0].joined), max(b.since, b.waiting[0].joined)),
				cmp.Compare(a.waiting[0].index, b.waiting[0].index),
			)
		})
		call, due := next.waiting[0], next.headSlot()
		o.grant(next, call, due)
		o.leave(next, call, due)
		o.goOn(call, due)
	}
}

// headSlot returns when the slot of the first comes.
func (l *oracleQueue) headSlot() int64 {
	head := l.waiting[0]
	at, _ := l.schedule.slot(max(l.since, head.joined), head.tokens)
	return at
}

// goOn takes the call through the queues of its rules, one after the other, to the first in which it has
// to wait.
func (o *oracle) goOn(call *oracleCall, now int64) {
	queues := o.queuesOf(call)
	for i := len(call.taken); i < len(queues); i++ {
		queue := queues[i]
		slot, ever := queue.slotOf(call, now)
		call.joined, call.deadline = now, now+int64(queue.rule.MaxWait)
		switch {
		case !ever || slot > call.deadline:
			queue.countRefused(call)
			o.refuse(call, now, queue.rule)
			return
		case slot > now || len(queue.waiting) > 0:
			if rule := o.refusing(call, queues[i+1:], now, slot); rule != nil {
				o.refuse(call, now, *rule)
				return
			}
			if len(queue.waiting) == 0 {
				queue.since = now
			}
			queue.waiting = append(queue.waiting, call)
			return
		}
		o.grant(queue, call, now)
	}
	if rule := o.fullAt(call, now, now); rule != nil {
		o.refuse(call, now, *rule)
		return
	}
	o.pass(call, now)
}

// grant gives the call its slot.
func (o *oracle) grant(queue *oracleQueue, call *oracleCall, slot int64) {
	queue.schedule.slot(max(queue.since, call.joined), call.tokens)
	queue.granted++
	call.taken = append(call.taken, grant{queue: queue, number: queue.granted, slot: slot, before: queue.schedule.clone()})
	queue.schedule.grant(slot, call.tokens)
}

// refusing returns the rule that would refuse a call which waits until a slot: a later queue behind those
// that wait there now, or a window.
func (o *oracle) refusing(call *oracleCall, later []*oracleQueue, now, slot int64) *flow.Rule {
	for _, queue := range later {
		if then, ever := queue.slotOf(call, now); !ever || then-slot > int64(queue.rule.MaxWait) {
			return &queue.rule
		}
	}
	return o.fullAt(call, now, slot)
}

// countRefused counts a call that is refused as load, where that warms.
func (l *oracleQueue) countRefused(call *oracleCall) {
	if warm, ok := l.schedule.(*warmThrottle); ok {
		warm.refused += float64(call.tokens)
	}
}

// fullAt returns the first window that is full now and, if nobody comes, later.
func (o *oracle) fullAt(call *oracleCall, now, later int64) *flow.Rule {
	for _, rule := range o.applying(call.offer) {
		if isQueued(rule) {
			continue
		}
		wanted := call.tokens
		if later > now && !rule.Shared && rule.Related == "" {
			wanted += o.promised(rule, call)
		}
		c := o.counter(rule, call.resource)
		if !c.fits(now, wanted) && !c.fits(later, wanted) && (wanted == call.tokens || !leaves(rule, now, later)) {
			return &rule
		}
	}
	return nil
}

// promised returns how many tokens of a window the calls of its resource will take
// that wait.
func (o *oracle) promised(rule flow.Rule, by *oracleCall) (tokens int64) {
	calls := map[*oracleCall]bool{}
	for _, queue := range o.queues {
		for _, call := range queue.waiting {
			if call.resource == by.resource && !calls[call] && slices.Contains(o.applying(call.offer), rule) {
				calls[call] = true
				tokens += call.tokens
			}
		}
	}
	return tokens
}

// leaves says whether what a window counts now may have left it later.
func leaves(rule flow.Rule, now, later int64) bool {
	parts := int64(max(1, rule.Buckets))
	bucket, span := int64(rule.Window)/parts, parts
	if rule.Strict {
		span++
	}
	return later/bucket >= now/bucket+span
}

// queuesOf returns the queues that a call has to wait in, in their order.
func (o *oracle) queuesOf(call *oracleCall) (queues []*oracleQueue) {
	for _, rule := range o.applying(call.offer) {
		if isQueued(rule) {
			queues = append(queues, o.queue(rule, call.resource))
		}
	}
	return queues
}

// compareOrder orders the rules of a call: those for fewer calls come first.
func compareOrder(a, b flow.Rule) int {
	return cmp.Or(
		cmp.Compare(breadth(a), breadth(b)),
		cmp.Compare(len(b.Match), len(a.Match)),
		cmp.Compare(a.Name, b.Name),
	)
}

func breadth(rule flow.Rule) int {
	switch {
	case rule.Shared || rule.Related != "":
		return 2
	case rule.Origin == "":
		return 1
	}
	return 0
}

// leave takes a call out of a queue. The call that becomes the first is refused if
// its slot comes too late for it.
func (o *oracle) leave(l *oracleQueue, call *oracleCall, now int64) {
	if l.waiting[0] != call {
		l.waiting = slices.DeleteFunc(l.waiting, func(c *oracleCall) bool { return c == call })
		return
	}
	l.waiting, l.since = l.waiting[1:], now
	if len(l.waiting) > 0 {
		if head := l.waiting[0]; l.headSlot() > head.deadline {
			o.leave(l, head, now)
			o.refuse(head, now, l.rule)
		}
	}
}

// slotOf returns the slot that a call would get that comes now.
func (l *oracleQueue) slotOf(call *oracleCall, now int64) (slot int64, ever bool) {
	if len(l.waiting) == 0 {
		return l.schedule.slot(now, call.tokens)
	}
	ahead, since := l.schedule.clone(), l.since
	if warm, ok := ahead.(*warmThrottle); ok {
		ahead = warm.plan()
	}
	for _, w := range l.waiting {
		since = max(since, w.joined)
		at, _ := ahead.slot(since, w.tokens)
		ahead.grant(at, w.tokens)
		since = at
	}
	return ahead.slot(max(since, now), call.tokens)
}

// refuse gives back the slots that the call has taken.
func (o *oracle) refuse(call *oracleCall, now int64, rule flow.Rule) {
	o.verdicts[call.index] = verdict{wait: now - call.at, rule: rule.Name}
	for _, g := range slices.Backward(call.taken) {
		switch schedule := g.queue.schedule.(type) {
		case *tokenBucket:
			schedule.takeBack(g.slot, call.tokens)
		case *smoothBursty:
			schedule.takeBack(g.slot, call.tokens)
		default:
			if g.number == g.queue.granted {
				g.queue.schedule = g.before
				g.queue.granted--
			}
		}
	}
}

func (o *oracle) pass(call *oracleCall, now int64) {
	o.verdicts[call.index] = verdict{passed: true, wait: now - call.at}
	for _, rule := range o.applying(call.offer) {
		if !isQueued(rule) && rule.Related == "" {
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
	for _, r := range o.rules {
		onResource := r.Resource == call.resource || r.Match == "*"
		ofOrigin := r.Origin == "" || r.Origin == call.origin || r.Origin == rule.OtherOrigins && !named(call.origin)
		if onResource && ofOrigin && !r.Shadow {
			rules = append(rules, r)
		}
	}
	slices.SortFunc(rules, compareOrder)
	return rules
}

func isQueued(rule flow.Rule) bool {
	return rule.Algorithm == flow.Throttle || rule.Algorithm == flow.TokenBucket
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

func (o *oracle) queue(rule flow.Rule, resource string) *oracleQueue {
	key := stateKey(rule, resource)
	if o.queues[key] == nil {
		o.queues[key] = &oracleQueue{rule: rule, schedule: newSchedule(rule)}
	}
	return o.queues[key]
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
