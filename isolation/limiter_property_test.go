package isolation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// model is the documented behaviour, call by call and without any economy.
type model struct {
	rule     isolation.Rule // complete
	retired  bool
	now      clock.Instant
	underWay []*modelCall
	waiting  []*modelCall // in the order in which they came
	overtook int          // places in a row that went to the highest priority while a lower one waited
	history  []change     // of the number under way
}

type modelCall struct {
	since    clock.Instant
	priority rule.Priority
	outcome  string // of a wait that has ended: pass, block or stale

	waiter rule.Waiter
	ticket rule.Ticket
	by     limiter // that it passed
}

type change struct {
	at       clock.Instant
	underWay int
}

// arrive decides on a call.
func (m *model) arrive(c *modelCall, until clock.Instant) string {
	r := m.rule
	switch {
	case m.retired:
		return "stale"
	case len(m.underWay) < r.Limit:
		m.begin(c)
		return "pass"
	case r.Limit == 0, r.MaxWait == 0:
		return "block"
	case len(m.waiting) >= r.MaxQueue && !m.mayDisplace(c):
		return "block"
	case m.isOver(c), until <= m.now:
		return "block"
	}
	for r.Order == isolation.LIFO && len(m.waiting) > r.MaxQueue {
		m.endWait(m.last(), "block")
	}
	if len(m.waiting) >= r.MaxQueue {
		if !m.mayDisplace(c) {
			return "block"
		}
		m.endWait(m.last(), "block")
	}
	m.waiting = append(m.waiting, c)
	return "wait"
}

// mayDisplace says whether a call may take the place of the last one in a full queue.
func (m *model) mayDisplace(c *modelCall) bool {
	if m.rule.Order == isolation.LIFO {
		return c.priority >= m.last().priority
	}
	return c.priority > m.last().priority
}

// last returns the last call, by the order of the rule, of the lowest priority that waits.
func (m *model) last() *modelCall {
	lowest := slices.MinFunc(m.waiting, comparePriority).priority
	return pick(having(m.waiting, func(p rule.Priority) bool { return p == lowest }), m.rule.Order == isolation.FIFO)
}

// next returns the call that gets the next place.
func (m *model) next() *modelCall {
	highest := slices.MaxFunc(m.waiting, comparePriority).priority
	calls := having(m.waiting, func(p rule.Priority) bool { return p == highest })
	if lower := having(m.waiting, func(p rule.Priority) bool { return p < highest }); len(lower) > 0 && m.overtook == 7 {
		calls = lower
	}
	return pick(calls, m.rule.Order == isolation.LIFO)
}

// countShare counts the places between two that go to a lower priority.
func (m *model) countShare(served *modelCall) {
	isLower := func(other *modelCall) bool { return other.priority < served.priority }
	isHigher := func(other *modelCall) bool { return other.priority > served.priority }
	if slices.ContainsFunc(m.waiting, isLower) && !slices.ContainsFunc(m.waiting, isHigher) {
		m.overtook++
	} else {
		m.overtook = 0
	}
}

func comparePriority(a, b *modelCall) int { return int(a.priority) - int(b.priority) }

func having(calls []*modelCall, condition func(rule.Priority) bool) []*modelCall {
	return slices.DeleteFunc(slices.Clone(calls), func(c *modelCall) bool { return !condition(c.priority) })
}

func pick(calls []*modelCall, newest bool) *modelCall {
	if newest {
		return calls[len(calls)-1]
	}
	return calls[0]
}

// isOver says whether the call has waited for as long as it may.
func (m *model) isOver(c *modelCall) bool { return m.now.Sub(c.since) >= m.rule.MaxWait }

func (m *model) begin(c *modelCall) {
	m.underWay = append(m.underWay, c)
	m.note()
}

func (m *model) end(c *modelCall) {
	m.underWay = without(m.underWay, c)
	m.note()
	m.handOver()
}

func (m *model) note() { m.history = append(m.history, change{m.now, len(m.underWay)}) }

// handOver gives free places to those who wait. One that has waited for exactly
// maxWait still gets one.
func (m *model) handOver() {
	for len(m.underWay) < m.rule.Limit && len(m.waiting) > 0 {
		c := m.next()
		if m.now.Sub(c.since) > m.rule.MaxWait {
			m.endWait(c, "block")
			continue
		}
		m.countShare(c)
		m.endWait(c, "pass")
		m.begin(c)
	}
}

func (m *model) endWait(c *modelCall, outcome string) {
	m.waiting = without(m.waiting, c)
	c.outcome = outcome
}

func (m *model) endAllWaits(outcome string) {
	for len(m.waiting) > 0 {
		m.endWait(m.waiting[0], outcome)
	}
}

// turn tells a call how its wait stands.
func (m *model) turn(c *modelCall) string {
	if c.outcome == "" && m.isOver(c) {
		m.endWait(c, "block")
	}
	if c.outcome == "" {
		return fmt.Sprint("wait ", m.rule.MaxWait-m.now.Sub(c.since))
	}
	return c.outcome
}

func (m *model) change(r isolation.Rule) {
	scope := r.Shadow || r.Origin != m.rule.Origin
	m.rule, m.retired = r, false
	if scope {
		m.endAllWaits("stale")
	}
	m.handOver()
	if r.Limit == 0 || r.MaxWait == 0 {
		m.endAllWaits("block")
	}
}

// highest is the highest number under way in this minute of the clock and the one before.
func (m *model) highest() (highest int) {
	start := m.now - m.now%clock.Instant(time.Minute) - clock.Instant(time.Minute)
	for i, c := range m.history {
		if last := i == len(m.history)-1; last || m.history[i+1].at >= start {
			highest = max(highest, c.underWay)
		}
	}
	return highest
}

func without(calls []*modelCall, c *modelCall) []*modelCall {
	return slices.DeleteFunc(slices.Clone(calls), func(other *modelCall) bool { return other == c })
}

// anyRule draws the rules that a reload goes through.
func anyRule(t *rapid.T) isolation.Rule {
	r := isolation.Rule{
		Resource: "r",
		Limit:    rapid.IntRange(0, 4).Draw(t, "limit"),
		MaxWait:  time.Duration(rapid.IntRange(0, 5).Draw(t, "maxWait")) * time.Second,
		Origin:   rapid.SampledFrom([]string{"", "", "", "", "mobile"}).Draw(t, "origin"),
		Shadow:   rapid.IntRange(0, 9).Draw(t, "shadow") == 0,
	}
	if r.MaxWait > 0 {
		r.MaxQueue = rapid.SampledFrom([]int{1, 2, 3, 4, 5, 12}).Draw(t, "maxQueue")
		r.Order = rapid.SampledFrom([]isolation.Order{isolation.FIFO, isolation.LIFO}).Draw(t, "order")
	}
	return isolation.Kind().WithDefaults(r)
}

// run drives a limiter and the model side by side.
type run struct {
	model
	versions   []limiter
	asked      []*modelCall    // that wait as far as they know
	priorities []rule.Priority // of calls
}

func (r *run) latest() limiter { return r.versions[len(r.versions)-1] }

func (r *run) call() rule.Call { return rule.Call{Now: r.now, Tokens: 1} }

// callOf is a call of a priority.
func (r *run) callOf(p rule.Priority) rule.Call {
	call := r.call()
	call.SetCaller(p, false)
	return call
}

func (r *run) advance(t *rapid.T) {
	steps := []time.Duration{0, 1, time.Second, time.Second, 2 * time.Second, 40 * time.Second, 3 * time.Minute}
	r.now = r.now.Add(rapid.SampledFrom(steps).Draw(t, "time"))
}

func (r *run) arriveOnBoth(t *rapid.T) {
	c := &modelCall{
		since:    r.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "waited")) * time.Second),
		priority: rapid.SampledFrom(r.priorities).Draw(t, "priority"),
	}
	until := rapid.SampledFrom([]clock.Instant{endless, endless, r.now, r.now + 1}).Draw(t, "until")
	c.by = r.latest()
	want := r.arrive(c, until)
	call := r.callOf(c.priority)
	ticket, decision := c.by.Acquire(call)
	if decision == rule.Wait {
		c.waiter, ticket, decision = c.by.Join(call, rule.Patience{Since: c.since, Until: until, Wake: func() {}})
	}
	c.ticket = ticket
	require.Equal(t, want, name(decision))
	if decision == rule.Wait {
		r.asked = append(r.asked, c)
	}
}

// endOnBoth ends a call that knows that it has passed.
func (r *run) endOnBoth(t *rapid.T) {
	var known []*modelCall
	for _, c := range r.underWay {
		if !slices.Contains(r.asked, c) {
			known = append(known, c)
		}
	}
	if len(known) == 0 {
		return
	}
	c := rapid.SampledFrom(known).Draw(t, "call")
	if rapid.Bool().Draw(t, "done") {
		c.by.Done(c.ticket, rule.Exit{Now: r.now})
	} else {
		c.by.GiveBack(r.now, c.ticket, 1)
	}
	r.end(c)
}

// handOverOnBoth has many calls come and others end, so that place after place goes to
// calls that wait.
func (r *run) handOverOnBoth(t *rapid.T) {
	for range rapid.IntRange(1, 10).Draw(t, "places") {
		r.arriveOnBoth(t)
		for _, c := range r.asked {
			if c.outcome != "" {
				r.pollOnBoth(t, c)
			}
		}
		r.endOnBoth(t)
	}
}

func (r *run) turnOnBoth(t *rapid.T) {
	if len(r.asked) > 0 {
		r.pollOnBoth(t, rapid.SampledFrom(r.asked).Draw(t, "call"))
	}
}

func (r *run) pollOnBoth(t *rapid.T, c *modelCall) {
	want := r.turn(c)
	ticket, remaining, decision := c.waiter.Poll(r.now)
	got := name(decision)
	if decision == rule.Wait {
		got = fmt.Sprint("wait ", remaining)
	} else {
		c.ticket = ticket
		r.asked = without(r.asked, c)
	}
	require.Equal(t, want, got)
}

func (r *run) leaveOnBoth(t *rapid.T) {
	if len(r.asked) == 0 {
		return
	}
	c := rapid.SampledFrom(r.asked).Draw(t, "call")
	r.asked = without(r.asked, c)
	c.waiter.Leave(r.now)
	switch c.outcome {
	case "":
		r.endWait(c, "left")
	case "pass":
		r.end(c)
	}
}

// changeOnBoth goes over to another version of the rule, which is activated or asked.
func (r *run) changeOnBoth(t *rapid.T) {
	next := anyRule(t)
	from := rapid.SampledFrom(r.versions).Draw(t, "from") // all share their state
	r.versions = append(r.versions, adopt(t, from, next, uint64(len(r.versions)+1)))
	r.change(next)
	if rapid.Bool().Draw(t, "activate") {
		r.latest().Activate(r.now)
	} else {
		r.arriveOnBoth(t)
	}
}

// askOldVersion asks a version that is not in force any more.
func (r *run) askOldVersion(t *rapid.T) {
	old := rapid.SampledFrom(r.versions).Draw(t, "version")
	if old == r.latest() {
		return
	}
	_, decision := old.Acquire(r.call())
	require.Equal(t, rule.Stale, decision)
	_, _, decision = old.Join(r.call(), patience(func() {}))
	require.Equal(t, rule.Stale, decision)
	old.Activate(r.now)
	old.Retire(r.now)
}

func (r *run) check(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "look") == 0 {
		return // looking begins another minute of the clock, as calls do
	}
	want := gauges{len(r.underWay), len(r.waiting), r.highest(), r.rule.Limit}
	require.Equal(t, want, gaugesOf(r.latest(), r.now))
	require.Equal(t, len(r.underWay) == 0 && len(r.waiting) == 0, r.latest().Idle(r.now))
	if len(r.waiting) > 0 {
		require.GreaterOrEqual(t, len(r.underWay), r.rule.Limit, "no place is free while a call waits")
	}
	if r.rule.Limit == 0 {
		require.Equal(t, rule.Never, r.latest().RetryAfter(r.call()))
	} else {
		require.Zero(t, r.latest().RetryAfter(r.call()))
	}
}

func TestLimiterBehavesAsDocumented(t *testing.T) {
	t.Parallel()
	for name, priorities := range map[string][]rule.Priority{
		"one priority":    {rule.PriorityNormal},
		"five priorities": {-2, -1, 0, 1, 2},
		"two, many calls": {rule.PriorityHigh, rule.PriorityHigh, rule.PriorityHigh, rule.PriorityLow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			behavesAsDocumented(t, priorities)
		})
	}
}

func behavesAsDocumented(t *testing.T, priorities []rule.Priority) {
	rapid.Check(t, func(t *rapid.T) {
		first := anyRule(t)
		r := &run{model: model{rule: first, now: epoch}, versions: []limiter{newLimiter(t, first)}, priorities: priorities}
		r.note()
		t.Repeat(map[string]func(*rapid.T){
			"time":    r.advance,
			"call 1":  r.arriveOnBoth,
			"call 2":  r.arriveOnBoth,
			"call 3":  r.arriveOnBoth,
			"end":     r.endOnBoth,
			"places":  r.handOverOnBoth,
			"turn":    r.turnOnBoth,
			"leave":   r.leaveOnBoth,
			"change":  r.changeOnBoth,
			"ask old": r.askOldVersion,
			"retire": func(*rapid.T) {
				r.latest().Retire(r.now)
				r.retired = true
				r.endAllWaits("stale")
			},
			"": r.check,
		})
	})
}

// Goroutines read the clock and then call, so instants may come in the wrong order.
func TestInstantsInAnyOrderNeverRaiseTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := isolation.Rule{Resource: "r", Limit: 2, MaxWait: 2 * time.Second, MaxQueue: 3, Order: isolation.LIFO}
		if rapid.Bool().Draw(t, "fifo") {
			r.Order = isolation.FIFO
		}
		l := newLimiter(t, r)
		instant := func() clock.Instant {
			return epoch.Add(time.Duration(rapid.IntRange(-70, 70).Draw(t, "instant")) * time.Second)
		}
		underWay, waiters := []rule.Ticket(nil), []rule.Waiter(nil)
		end := func() {
			l.Done(underWay[0], rule.Exit{Now: instant(), Start: instant()})
			underWay = underWay[1:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"call": func(*rapid.T) {
				call := rule.Call{Now: instant(), Tokens: 1}
				ticket, decision := l.Acquire(call)
				if decision == rule.Wait {
					var w rule.Waiter
					w, ticket, decision = l.Join(call, rule.Patience{Since: instant(), Until: instant(), Wake: func() {}})
					if decision == rule.Wait {
						waiters = append(waiters, w)
					}
				}
				if decision == rule.Pass {
					underWay = append(underWay, ticket)
				}
			},
			"end": func(*rapid.T) {
				if len(underWay) > 0 {
					end()
				}
			},
			"turns": func(*rapid.T) {
				waiters = slices.DeleteFunc(waiters, func(w rule.Waiter) bool {
					ticket, _, decision := w.Poll(instant())
					if decision == rule.Pass {
						underWay = append(underWay, ticket)
					}
					return decision != rule.Wait
				})
			},
			"": func(t *rapid.T) {
				g := gaugesOf(l, instant())
				assert.LessOrEqual(t, len(underWay), g.inFlight, "those that have a place may not know it yet")
				assert.LessOrEqual(t, g.inFlight, r.Limit)
				assert.LessOrEqual(t, g.waiting, r.MaxQueue)
				assert.GreaterOrEqual(t, g.highest, g.inFlight)
				assert.True(t, g.waiting == 0 || g.inFlight == r.Limit)
			},
		})
		for len(underWay) > 0 {
			end()
		}
		for _, w := range waiters {
			w.Leave(instant())
		}
		require.True(t, l.Idle(instant()), "nothing is left over")
	})
}
