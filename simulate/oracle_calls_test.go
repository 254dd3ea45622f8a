package simulate_test

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// callOracle follows calls from their arrival to their end through a breaker, an
// isolation rule and a flow rule, by the text of the documentation: a plain event
// simulation, which shares no code with what it tests. Times are nanoseconds.
type callOracle struct {
	now       int64
	events    oracleEvents
	number    int
	isolation []isolation.Rule // complete
	breakers  []breaker.Rule   // complete
	flow      []flow.Rule      // complete: a window, or a throttle
	pools     map[string]*oraclePool
	circuits  map[string]*oracleCircuit
	counters  map[string]counter
	throttles map[string]*oracleThrottle
	ready     []*tracedCall // that need not wait any longer, in order
	states    []simulate.StateChange
}

// tracedCall is a call with what it has taken.
type tracedCall struct {
	at, service, timeout         int64
	resource, origin, priority   string
	fails                        bool
	server                       *oracleServer
	waits                        int             // of the wait that a timer is for
	since                        int64           // when it began to wait
	waited                       bool            // it has
	pools                        []*oraclePool   // of which it has a place, in their order
	waitsFor                     *oraclePool     // for a place of it
	throttle                     *oracleThrottle // in whose queue it waits
	granted, refused             bool            // how its wait for a place has ended
	passed                       int64
	underWay, done, failed, pass bool
	end                          int64
	wait                         int64
	rule, kind                   string
	tickets                      []circuitTicket
	shadows                      []*oraclePool
}

// The order of events at one instant.
const (
	oracleEnd = iota
	oracleTimeout
	oracleProbeTimeout
	oracleReady
	oracleWaitOver
	oracleArrival
)

type oracleEvent struct {
	at           int64
	kind, number int
	call         *tracedCall
	wait         int // that ends, or the number of the probe
	circuit      *oracleCircuit
	epoch        int
}

type oracleEvents []oracleEvent

func (l oracleEvents) Len() int      { return len(l) }
func (l oracleEvents) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l oracleEvents) Less(i, j int) bool {
	a, b := l[i], l[j]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number)) < 0
}
func (l *oracleEvents) Push(e any) { *l = append(*l, e.(oracleEvent)) }
func (l *oracleEvents) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

func (o *callOracle) add(e oracleEvent) {
	o.number++
	e.number = o.number
	heap.Push(&o.events, e)
}

// follow fills in the outcomes of the calls and returns the changes of state.
func (o *callOracle) follow(calls []*tracedCall) []simulate.StateChange {
	o.pools, o.circuits = map[string]*oraclePool{}, map[string]*oracleCircuit{}
	o.counters, o.throttles = map[string]counter{}, map[string]*oracleThrottle{}
	for _, c := range calls {
		o.add(oracleEvent{at: c.at, kind: oracleArrival, call: c})
	}
	for len(o.events) > 0 {
		e := heap.Pop(&o.events).(oracleEvent)
		o.now = e.at
		o.process(e)
		for _, c := range o.ready {
			o.add(oracleEvent{at: o.now, kind: oracleReady, call: c})
		}
		o.ready = nil
	}
	return o.states
}

func (o *callOracle) process(e oracleEvent) {
	switch e.kind {
	case oracleArrival:
		o.walk(e.call)
	case oracleEnd:
		o.endWork(e.call)
	case oracleTimeout:
		if e.call.underWay {
			o.endCall(e.call, true)
		}
	case oracleProbeTimeout:
		e.circuit.over(o, e.call, e.wait, e.epoch)
	case oracleReady:
		if !e.call.done && !e.call.underWay {
			o.walk(e.call)
		}
	case oracleWaitOver:
		if e.wait != e.call.waits || e.call.done || e.call.underWay {
			return
		}
		if c := e.call; c.throttle != nil { // its slot has come
			o.walk(c)
		} else {
			c.waitsFor.leave(c)
			o.refuse(c, c.waitsFor.rule.Name, "isolation")
		}
	}
}

// walk asks the rules one after the other, for a call that arrives or that need not
// wait any longer.
func (o *callOracle) walk(c *tracedCall) {
	if c.refused {
		o.refuse(c, c.waitsFor.rule.Name, "isolation")
		return
	}
	if c.granted {
		c.pools, c.granted = append(c.pools, c.waitsFor), false
	}
	c.waitsFor = nil
	var tickets []circuitTicket
	giveBack := func() {
		for _, t := range slices.Backward(tickets) {
			t.circuit.giveBack(c, t)
		}
	}
	for _, circuit := range o.circuitsOf(c, false) {
		ticket, ok := circuit.acquire(o, c)
		if !ok {
			giveBack()
			o.refuse(c, circuit.rule.Name, "breaker")
			return
		}
		tickets = append(tickets, ticket)
	}
	for _, pool := range o.poolsOf(c, false) {
		switch {
		case slices.Contains(c.pools, pool):
		case pool.underWay < pool.rule.Limit:
			pool.underWay++
			c.pools = append(c.pools, pool)
		default:
			giveBack()
			o.joinPool(c, pool)
			return
		}
	}
	if kind, rule := o.askFlow(c, giveBack); rule != "" || kind == "wait" {
		if kind == "wait" {
			return
		}
		giveBack()
		o.refuse(c, rule, "flow")
		return
	}
	c.tickets = tickets
	o.pass(c)
}

// joinPool has a call wait for a place, if it may.
func (o *callOracle) joinPool(c *tracedCall, pool *oraclePool) {
	r := pool.rule
	if !c.waited {
		c.since = o.now
	}
	deadline := c.since + int64(r.MaxWait)
	if deadline <= o.now || r.Limit == 0 || len(pool.queue) >= r.MaxQueue && !pool.mayDisplace(c) {
		o.refuse(c, r.Name, "isolation")
		return
	}
	if len(pool.queue) >= r.MaxQueue {
		displaced := pool.last()
		pool.leave(displaced)
		displaced.refused = true
		o.ready = append(o.ready, displaced)
	}
	pool.queue = append(pool.queue, c)
	c.waited, c.waitsFor = true, pool
	c.waits++
	o.add(oracleEvent{at: deadline, kind: oracleWaitOver, call: c, wait: c.waits})
}

// askFlow asks the flow rule for the call: it returns the rule if that refuses.
func (o *callOracle) askFlow(c *tracedCall, giveBack func()) (kind, rule string) {
	for _, r := range o.flow {
		if !applies(r.Resource, r.Origin, c) {
			continue
		}
		if !isQueued(r) {
			key := keyOf(r.Name, r.Shared, c)
			if o.counters[key] == nil {
				o.counters[key] = newCounter(r)
			}
			if !o.counters[key].fits(o.now, 1) {
				return "", r.Name
			}
			o.counters[key].count(o.now, 1)
			continue
		}
		t := o.throttleOf(r, c)
		switch {
		case len(t.queue) == 0 && t.free() <= o.now, c.throttle != nil && t.queue[0] == c && t.free() <= o.now:
			t.last = o.now
			t.leave(o, c)
		case c.throttle != nil:
			giveBack()
			return "wait", ""
		case max(t.free(), o.now)+int64(len(t.queue))*t.apart > o.now+int64(r.MaxWait):
			return "", r.Name
		default:
			giveBack()
			c.throttle = t
			t.queue = append(t.queue, c)
			t.wakeFirst(o)
			return "wait", ""
		}
	}
	return "", ""
}

func (o *callOracle) pass(c *tracedCall) {
	c.passed, c.underWay, c.pass, c.wait = o.now, true, true, o.now-c.at
	for _, p := range o.poolsOf(c, true) {
		if p.underWay < p.rule.Limit {
			p.underWay++
			c.shadows = append(c.shadows, p)
		}
	}
	for _, b := range o.circuitsOf(c, true) {
		if ticket, ok := b.acquire(o, c); ok {
			c.tickets = append(c.tickets, ticket)
		}
	}
	if c.timeout > 0 {
		o.add(oracleEvent{at: o.now + c.timeout, kind: oracleTimeout, call: c})
	}
	if c.server != nil {
		c.server.queue = append(c.server.queue, c)
		c.server.begin(o)
		return
	}
	o.add(oracleEvent{at: o.now + c.service, kind: oracleEnd, call: c})
}

// endWork ends the work for a call.
func (o *callOracle) endWork(c *tracedCall) {
	if c.underWay {
		o.endCall(c, c.fails)
	}
	if c.server != nil {
		c.server.busy--
		c.server.begin(o)
	}
}

func (o *callOracle) endCall(c *tracedCall, failed bool) {
	c.underWay, c.done, c.failed, c.end = false, true, failed, o.now
	for _, t := range slices.Backward(c.tickets) {
		t.circuit.ended(o, c, t)
	}
	c.leavePools(o)
}

// refuse refuses a call; what it has goes back.
func (o *callOracle) refuse(c *tracedCall, rule, kind string) {
	c.done, c.wait, c.rule, c.kind = true, o.now-c.at, rule, kind
	if c.throttle != nil {
		c.throttle.leave(o, c)
	}
	c.leavePools(o)
}

// leavePools frees the places of a call, the last first.
func (c *tracedCall) leavePools(o *callOracle) {
	for _, p := range slices.Backward(append(c.pools, c.shadows...)) {
		p.release(o)
	}
}

// applies says whether a rule is for a call. A rule without a resource is a pattern for
// all.
func applies(resource, origin string, c *tracedCall) bool {
	return (resource == "" || resource == c.resource) && (origin == "" || origin == c.origin)
}

func keyOf(name string, shared bool, c *tracedCall) string {
	if shared {
		return name
	}
	return name + "\x00" + c.resource
}

// compareTargets orders rules: those for fewer calls come first.
func compareTargets(sharedA, sharedB bool, originA, originB, matchA, matchB, nameA, nameB string) int {
	return compareOrder(
		flow.Rule{Shared: sharedA, Origin: originA, Match: matchA, Name: nameA},
		flow.Rule{Shared: sharedB, Origin: originB, Match: matchB, Name: nameB},
	)
}

// poolsOf returns the isolation rules for a call, in their order.
func (o *callOracle) poolsOf(c *tracedCall, shadow bool) (list []*oraclePool) {
	for _, r := range o.isolation {
		if r.Shadow != shadow || !applies(r.Resource, r.Origin, c) {
			continue
		}
		key := keyOf(r.Name, r.Shared, c)
		if o.pools[key] == nil {
			o.pools[key] = &oraclePool{rule: r}
		}
		list = append(list, o.pools[key])
	}
	slices.SortFunc(list, func(a, b *oraclePool) int {
		p, q := a.rule, b.rule
		return compareTargets(p.Shared, q.Shared, p.Origin, q.Origin, p.Match, q.Match, p.Name, q.Name)
	})
	return list
}

// oraclePool is an isolation rule at work.
type oraclePool struct {
	rule       isolation.Rule
	underWay   int
	queue      []*tracedCall // the oldest first
	passedOver int           // places in a row that went to the highest priority while a lower one waited
}

// release frees a place, or hands it to a call that waits.
func (p *oraclePool) release(o *callOracle) {
	p.underWay--
	if len(p.queue) == 0 || p.underWay >= p.rule.Limit {
		return
	}
	highest, lower := p.byPriority()
	c := oldestOrNewest(highest, p.rule.Order == isolation.LIFO)
	switch {
	case len(lower) == 0:
		p.passedOver = 0
	case p.passedOver < 7:
		p.passedOver++
	default:
		c = oldestOrNewest(lower, p.rule.Order == isolation.LIFO)
		p.passedOver = 0
	}
	p.leave(c)
	p.underWay++
	c.granted = true
	c.waits++ // the wait for a place has ended
	o.ready = append(o.ready, c)
}

// byPriority returns the calls of the highest priority that waits, and all others.
func (p *oraclePool) byPriority() (highest, lower []*tracedCall) {
	most := slices.MinFunc(p.queue, comparePriority)
	for _, c := range p.queue {
		if c.priority == most.priority {
			highest = append(highest, c)
		} else {
			lower = append(lower, c)
		}
	}
	return highest, lower
}

// last returns the call that is the first to be displaced.
func (p *oraclePool) last() *tracedCall {
	least := slices.MaxFunc(p.queue, comparePriority)
	calls := slices.DeleteFunc(slices.Clone(p.queue), func(c *tracedCall) bool { return c.priority != least.priority })
	return oldestOrNewest(calls, p.rule.Order == isolation.FIFO)
}

func (p *oraclePool) mayDisplace(c *tracedCall) bool {
	compared := comparePriority(c, p.last())
	return compared < 0 || compared == 0 && p.rule.Order == isolation.LIFO
}

func oldestOrNewest(calls []*tracedCall, newest bool) *tracedCall {
	if newest {
		return calls[len(calls)-1]
	}
	return calls[0]
}

func (p *oraclePool) leave(c *tracedCall) {
	p.queue = slices.DeleteFunc(p.queue, func(w *tracedCall) bool { return w == c })
}

// comparePriority puts more important calls first.
func comparePriority(a, b *tracedCall) int {
	of := func(c *tracedCall) rule.Priority {
		p, _ := rule.ParsePriority(c.priority)
		return p
	}
	return cmp.Compare(of(b), of(a))
}

// oracleThrottle lets one call pass after the other, a fixed time apart.
type oracleThrottle struct {
	apart, last int64
	queue       []*tracedCall
}

func (o *callOracle) throttleOf(r flow.Rule, c *tracedCall) *oracleThrottle {
	key := keyOf(r.Name, r.Shared, c)
	if o.throttles[key] == nil {
		o.throttles[key] = &oracleThrottle{apart: int64(math.Round(1e9 / perSecond(r))), last: math.MinInt64 / 2}
	}
	return o.throttles[key]
}

func (t *oracleThrottle) free() int64 { return t.last + t.apart }

// leave takes a call out of the queue.
func (t *oracleThrottle) leave(o *callOracle, c *tracedCall) {
	wasFirst := len(t.queue) > 0 && t.queue[0] == c
	t.queue = slices.DeleteFunc(t.queue, func(w *tracedCall) bool { return w == c })
	c.throttle = nil
	if wasFirst {
		t.wakeFirst(o)
	}
}

// wakeFirst has the first go on when its slot comes.
func (t *oracleThrottle) wakeFirst(o *callOracle) {
	if len(t.queue) == 0 {
		return
	}
	first := t.queue[0]
	if t.free() <= o.now {
		o.ready = append(o.ready, first)
		return
	}
	first.waits++
	o.add(oracleEvent{at: t.free(), kind: oracleWaitOver, call: first, wait: first.waits})
}

// oracleServer has workers that serve calls first come, first served.
type oracleServer struct {
	of    simulate.Server
	busy  int
	queue []*tracedCall
}

func (s *oracleServer) begin(o *callOracle) {
	if s.busy == s.of.Workers || len(s.queue) == 0 {
		return
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	s.busy++
	mean := s.of.Service.Mean
	for _, change := range s.of.Changes {
		if int64(change.At) <= o.now {
			mean = change.Service.Mean
		}
	}
	took := math.Round(float64(mean) * (1 + s.of.Slowdown*float64(len(s.queue))))
	o.add(oracleEvent{at: o.now + int64(took), kind: oracleEnd, call: c})
}
