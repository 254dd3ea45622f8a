package breaker_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// modelCall is a call that passed.
type modelCall struct {
	limiter rule.Finisher
	ticket  rule.Ticket
	start   clock.Instant
	period  int // the calls of an earlier period count for nothing
	probe   bool
	over    bool // it has counted before its end
	long    bool // it is long-lived
	ignore  bool // it passed while the breaker was forced closed
}

// model is a breaker that remembers every outcome and computes everything from them.
type model struct {
	rule      breaker.Rule
	ruled     clock.Instant // when it came
	state     string
	forced    bool
	period    int // how often the state has changed
	since     clock.Instant
	doublings int
	outcomes  []modelOutcome
	running   []*modelCall // under way, and not counted yet; of a rule about slow calls
	probes    []*modelCall // likewise
	endedWell int
	endedBad  int
	changes   []string
}

type modelOutcome struct {
	at  clock.Instant
	bad bool
}

func (m *model) openTime() time.Duration {
	d := m.rule.OpenFor
	for range m.doublings {
		d *= 2
	}
	return min(d, m.rule.MaxOpenFor)
}

func (m *model) enter(state string, forced bool, at clock.Instant) {
	at = max(at, m.since)
	if state != m.state {
		m.changes = append(m.changes, fmt.Sprintf("%v %s to %s", at.Sub(epoch), m.state, state))
	}
	m.state, m.forced, m.since = state, forced, at
	m.period++
	m.outcomes, m.running, m.probes, m.endedWell, m.endedBad = nil, nil, nil, 0, 0
	if state == breaker.Closed || forced {
		m.doublings = 0
	}
}

// probingFails opens the breaker for twice as long as before.
func (m *model) probingFails(at clock.Instant) {
	if m.openTime() < m.rule.MaxOpenFor {
		m.doublings++
	}
	m.enter(breaker.Open, false, at)
}

// slowAt returns when a call becomes slow while it runs.
func (m *model) slowAt(c *modelCall) clock.Instant {
	if m.rule.Strategy != breaker.SlowRatio || c.long {
		return math.MaxInt64
	}
	return c.start.Add(m.rule.SlowAfter + 1)
}

// timeOut counts what becomes bad before an instant, one call after the other.
func (m *model) timeOut(before clock.Instant) {
	for {
		var first *modelCall
		var at clock.Instant
		for _, c := range slices.Concat(m.running, m.probes) {
			due := m.slowAt(c)
			if c.probe {
				due = min(due, c.start.Add(m.rule.ProbeTimeout))
			}
			if due = max(due, m.ruled); due < before && (first == nil || due < at) {
				first, at = c, due
			}
		}
		if first == nil {
			return
		}
		first.over = true
		m.count(first, at, true)
	}
}

// count counts an outcome of a call of this period.
func (m *model) count(c *modelCall, at clock.Instant, bad bool) {
	m.forget(c)
	switch {
	case c.probe && bad:
		m.endedBad++
	case c.probe:
		m.endedWell++
	default:
		m.outcomes = append(m.outcomes, modelOutcome{at, bad})
		if m.opens(at) {
			m.enter(breaker.Open, false, at)
		}
		return
	}
	m.judgeProbes(at)
}

// forget removes a call from those under way.
func (m *model) forget(c *modelCall) {
	is := func(other *modelCall) bool { return other == c }
	m.running, m.probes = slices.DeleteFunc(m.running, is), slices.DeleteFunc(m.probes, is)
}

// tooMany says whether so many bad probes of all are too many.
func (m *model) tooMany(bad, all int) bool {
	if m.rule.ProbeThreshold == 0 {
		return bad > 0
	}
	threshold, _ := new(big.Rat).SetString(strconv.FormatFloat(m.rule.ProbeThreshold, 'f', -1, 64))
	return big.NewRat(int64(bad), int64(all)).Cmp(threshold) >= 0
}

// judgeProbes ends the probing if nothing that may still come decides it otherwise.
func (m *model) judgeProbes(at clock.Instant) {
	if m.state != breaker.HalfOpen {
		return
	}
	all := max(m.rule.Probes, len(m.probes)+m.endedWell+m.endedBad)
	if m.tooMany(m.endedBad, all) {
		m.probingFails(at)
		return
	}
	for stillBad := range all - m.endedWell - m.endedBad + 1 {
		if m.tooMany(m.endedBad+stillBad, all) {
			return // it may still fail
		}
	}
	m.enter(breaker.Closed, false, at)
}

// arrive returns whether a call passes, and after what time to retry if not.
func (m *model) arrive(c *modelCall) (passes bool, retry time.Duration) {
	m.timeOut(c.start + 1)
	if m.forced {
		c.ignore = true
		return m.state == breaker.Closed, rule.Never
	}
	if m.state == breaker.Open {
		if left := m.since.Add(m.openTime()).Sub(c.start); left > 0 {
			return false, left
		}
		m.enter(breaker.HalfOpen, false, c.start)
	}
	c.period = m.period
	if m.state == breaker.HalfOpen {
		if len(m.probes)+m.endedWell+m.endedBad >= m.rule.Probes {
			return false, 0
		}
		c.probe = true
		m.probes = append(m.probes, c)
		return true, 0
	}
	if m.rule.Strategy == breaker.SlowRatio && !c.long {
		m.running = append(m.running, c)
	}
	return true, 0
}

// lastOf returns how many of the latest calls count; 0 if those of a time do.
func lastOf(r breaker.Rule) int {
	if r.Strategy == breaker.Consecutive {
		return int(r.Threshold)
	}
	return r.WindowCalls
}

// latest returns the latest outcomes, at most so many.
func (m *model) latest(n int) []modelOutcome { return m.outcomes[max(0, len(m.outcomes)-n):] }

// inWindow returns the outcomes that count at an instant.
func (m *model) inWindow(now clock.Instant) (calls, bad int) {
	if lastOf(m.rule) > 0 {
		for _, o := range m.latest(lastOf(m.rule)) {
			calls++
			if o.bad {
				bad++
			}
		}
		return calls, bad
	}
	bucket := int64(m.rule.Window) / 10
	for _, o := range m.outcomes {
		now = max(now, o.at)
	}
	for _, o := range m.outcomes {
		if int64(now)/bucket-int64(o.at)/bucket >= 10 {
			continue
		}
		calls++
		if o.bad {
			bad++
		}
	}
	return calls, bad
}

// inARow returns how many of the latest outcomes are bad.
func (m *model) inARow() (n int) {
	for i := len(m.outcomes) - 1; i >= 0 && m.outcomes[i].bad; i-- {
		n++
	}
	return n
}

// opens says whether what counts is too bad.
func (m *model) opens(now clock.Instant) bool {
	if m.rule.Strategy == breaker.Consecutive {
		return m.inARow() >= int(m.rule.Threshold)
	}
	calls, bad := m.inWindow(now)
	threshold, _ := new(big.Rat).SetString(strconv.FormatFloat(m.rule.Threshold, 'f', -1, 64))
	if m.rule.Strategy != breaker.ErrorCount {
		threshold.Mul(threshold, big.NewRat(int64(calls), 1))
	}
	return calls >= m.rule.MinCalls && big.NewRat(int64(bad), 1).Cmp(threshold) >= 0
}

func (m *model) end(c *modelCall, e rule.Exit) {
	m.timeOut(e.Now)
	if c.ignore || c.over || c.period != m.period {
		return
	}
	bad := e.Failed
	if m.rule.Strategy == breaker.SlowRatio {
		bad = !e.LongLived && e.Now.Sub(c.start) > m.rule.SlowAfter
		e.Ignored = e.Ignored || e.LongLived
	}
	if !bad && e.Ignored {
		m.forget(c)
		m.judgeProbes(e.Now)
		return
	}
	m.count(c, e.Now, bad)
}

func (m *model) giveBack(c *modelCall, now clock.Instant) {
	if !c.probe {
		m.forget(c) // not an event for the breaker
		return
	}
	m.timeOut(now)
	if c.period == m.period && !c.over {
		m.forget(c)
		m.judgeProbes(now)
	}
}

func (m *model) reload(r breaker.Rule, now clock.Instant) {
	m.timeOut(now)
	if r.Window != m.rule.Window || r.SlowAfter != m.rule.SlowAfter {
		m.outcomes = nil
	}
	if last := lastOf(m.rule); last > 0 {
		m.outcomes = m.latest(last) // a larger window does not bring back the others
	}
	m.rule, m.ruled = r, max(m.ruled, now)
	if last := lastOf(m.rule); last > 0 {
		m.outcomes = m.latest(last)
	}
	m.judgeProbes(now)
}

func (m *model) control(state string, now clock.Instant) {
	m.timeOut(now)
	switch {
	case state == "" && m.forced:
		m.enter(breaker.Closed, false, now)
	case state != "" && (state != m.state || !m.forced):
		m.enter(state, true, now)
	}
}

// machine is a breaker, its model, and all of its callers.
type machine struct {
	model    model
	limiters []limiter // all versions; the last may not be in force yet
	next     breaker.Rule
	now      clock.Instant
	calls    []*modelCall
	changes  []string
}

func drawRule(t *rapid.T) breaker.Rule {
	r := breaker.Rule{
		Resource: "r",
		Strategy: rapid.SampledFrom([]breaker.Strategy{
			breaker.SlowRatio, breaker.SlowRatio, breaker.ErrorRatio, breaker.ErrorCount, breaker.Consecutive,
		}).Draw(t, "strategy"),
		Threshold:    rapid.SampledFrom([]float64{0.1, 0.3, 0.5, 0.7, 1}).Draw(t, "threshold"),
		MinCalls:     rapid.IntRange(1, 10).Draw(t, "minCalls"),
		Window:       rapid.SampledFrom([]time.Duration{100 * ms, time.Second}).Draw(t, "window"),
		OpenFor:      rapid.SampledFrom([]time.Duration{ms, 70 * ms, time.Second}).Draw(t, "openFor"),
		Probes:       rapid.IntRange(1, 4).Draw(t, "probes"),
		ProbeTimeout: rapid.SampledFrom([]time.Duration{20 * ms, 100 * ms, time.Second}).Draw(t, "probeTimeout"),
	}
	if rapid.Bool().Draw(t, "of the last calls") {
		r.Window, r.WindowCalls = 0, rapid.SampledFrom([]int{1, 2, 5, 10, 33, 40, 100}).Draw(t, "calls")
		r.MinCalls = min(r.MinCalls, r.WindowCalls)
	}
	r.ProbeThreshold = rapid.SampledFrom([]float64{0, 0.001, 0.25, 0.3, 0.5, 0.75, 1}).Draw(t, "probeThreshold")
	r.MaxOpenFor = r.OpenFor * time.Duration(rapid.IntRange(1, 5).Draw(t, "times"))
	switch r.Strategy {
	case breaker.SlowRatio:
		r.SlowAfter = rapid.SampledFrom([]time.Duration{10 * ms, 50 * ms}).Draw(t, "slowAfter")
	case breaker.ErrorCount:
		r.Threshold = float64(rapid.IntRange(1, 5).Draw(t, "count"))
		if r.WindowCalls > 0 {
			r.Threshold = min(r.Threshold, float64(r.WindowCalls))
		}
	case breaker.Consecutive:
		r.Threshold = float64(rapid.SampledFrom([]int{1, 2, 3, 5, 40}).Draw(t, "in a row"))
		r.Window, r.WindowCalls, r.MinCalls = 0, 0, 0
	}
	return breaker.Kind().WithDefaults(r)
}

func newMachine(t *rapid.T) *machine {
	m := &machine{now: rapid.SampledFrom([]clock.Instant{0, epoch}).Draw(t, "start")}
	r := drawRule(t)
	require.Empty(t, breaker.Kind().Faults(r))
	m.model = model{rule: r, ruled: m.now, state: breaker.Closed, since: m.now}
	m.next = r
	m.limiters = []limiter{breaker.Kind().Of(r).NewLimiter(m.env()).(limiter)}
	return m
}

func (m *machine) env() rule.Env {
	return rule.Env{Version: uint64(len(m.limiters)), Now: m.now, Changed: func(at clock.Instant, from, to, _ string) {
		m.changes = append(m.changes, fmt.Sprintf("%v %s to %s", at.Sub(epoch), from, to))
	}}
}

func (m *machine) limiter() limiter { return m.limiters[len(m.limiters)-1] }

func (m *machine) anyLimiter(t *rapid.T) limiter {
	return rapid.SampledFrom(m.limiters).Draw(t, "version")
}

// bringIntoForce is what happens when the last version is activated or asked.
func (m *machine) bringIntoForce(now clock.Instant) {
	if m.next != m.model.rule {
		m.model.reload(m.next, now)
	}
}

func (m *machine) arrive(t *rapid.T) {
	c := &modelCall{limiter: m.limiter(), start: m.late(t), long: rapid.IntRange(0, 7).Draw(t, "long-lived") == 0}
	m.bringIntoForce(c.start)
	passes, retry := m.model.arrive(c)
	request := rule.Call{Now: c.start, Tokens: 1}
	if c.long {
		request.SetLongLived()
	}
	ticket, decision := m.limiter().Acquire(request)
	if passes {
		require.Equal(t, rule.Pass, decision)
		c.ticket = ticket
		m.calls = append(m.calls, c)
		return
	}
	require.Equal(t, rule.Block, decision)
	assert.Equal(t, retry, m.anyLimiter(t).RetryAfter(request))
}

// late returns the time of a goroutine that has read the clock and been delayed since, in one case of
// four.
func (m *machine) late(t *rapid.T) clock.Instant {
	return m.now - clock.Instant(rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 0, 0, 1, 15 * ms}).Draw(t, "late"))
}

// markLongLived says that a call is long-lived which has passed.
func (m *machine) markLongLived(t *rapid.T) {
	if len(m.calls) == 0 {
		t.Skip("no call is under way")
	}
	c := rapid.SampledFrom(m.calls).Draw(t, "call")
	c.long = true
	if slices.Contains(m.model.running, c) {
		c.over = true // it never counts
		m.model.forget(c)
	}
	c.limiter.(optional.Watcher).MarkLongLived(c.ticket)
}

// take removes a call that is under way.
func (m *machine) take(t *rapid.T) *modelCall {
	if len(m.calls) == 0 {
		t.Skip("no call is under way")
	}
	i := rapid.IntRange(0, len(m.calls)-1).Draw(t, "which")
	c := m.calls[i]
	m.calls = append(m.calls[:i:i], m.calls[i+1:]...)
	return c
}

func (m *machine) end(t *rapid.T) {
	c := m.take(t)
	e := rule.Exit{Now: m.late(t), Start: c.start, LongLived: c.long}
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0, 1, 2:
		e.Failed = true
	case 3:
		e.Ignored = true
	}
	m.model.end(c, e)
	c.limiter.Done(c.ticket, e)
}

func (m *machine) giveBack(t *rapid.T) {
	c := m.take(t)
	m.model.giveBack(c, m.now)
	c.limiter.GiveBack(m.now, c.ticket, 1)
}

func (m *machine) adopt(t *rapid.T) {
	r := m.next
	for r == m.next || r == m.model.rule {
		r = drawRule(t)
		if rapid.Bool().Draw(t, "counts alike") {
			r.Strategy, r.Threshold, r.SlowAfter = m.next.Strategy, m.next.Threshold, m.next.SlowAfter
			r.Window, r.WindowCalls, r.MinCalls = m.next.Window, m.next.WindowCalls, m.next.MinCalls
		}
	}
	require.Empty(t, breaker.Kind().Faults(r))
	m.limiters = append(m.limiters, breaker.Kind().Of(r).Adopt(m.anyLimiter(t), m.env()).(limiter))
	m.next = r
}

func (m *machine) activate(*rapid.T) {
	m.limiter().Activate(m.now)
	m.bringIntoForce(m.now)
}

// old asks a version that is no longer in force.
func (m *machine) old(t *rapid.T) {
	if m.next != m.model.rule || len(m.limiters) == 1 {
		t.Skip("the last version is not in force yet")
	}
	l := rapid.SampledFrom(m.limiters[:len(m.limiters)-1]).Draw(t, "old version")
	_, decision := l.Acquire(rule.Call{Now: m.now, Tokens: 1})
	assert.Equal(t, rule.Stale, decision)
	l.Activate(m.now)
}

func (m *machine) control(t *rapid.T) {
	state := rapid.SampledFrom([]string{breaker.Closed, breaker.Open, "", "", ""}).Draw(t, "state")
	m.model.control(state, m.now)
	m.anyLimiter(t).Control(m.now, state)
}

func (m *machine) letTimePass(t *rapid.T) {
	r := m.model.rule
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{
		1, ms, 10 * ms, 50 * ms, 50*ms + 1, 100 * ms, r.Window, r.OpenFor, r.OpenFor - 1, r.ProbeTimeout,
		r.ProbeTimeout + r.OpenFor, m.model.openTime(),
	}).Draw(t, "time"))
}

// letTimeComeUp moves the time to when something becomes due, or just before or after.
func (m *machine) letTimeComeUp(t *rapid.T) {
	due := m.now + 1
	switch {
	case m.model.state == breaker.Open && !m.model.forced:
		due = m.model.since.Add(m.model.openTime())
	case len(m.model.probes) > 0:
		due = m.model.probes[0].start.Add(m.model.rule.ProbeTimeout)
	case len(m.model.running) > 0 && rapid.Bool().Draw(t, "slow"):
		due = m.model.slowAt(rapid.SampledFrom(m.model.running).Draw(t, "running"))
	case len(m.model.outcomes) > 0 && m.model.rule.Window > 0:
		bucket := clock.Instant(m.model.rule.Window / 10)
		due = (m.model.outcomes[0].at/bucket + 10) * bucket
	}
	if due == math.MaxInt64 {
		due = m.now // a call that is watched no longer
	}
	m.now = max(m.now, due+clock.Instant(rapid.IntRange(-1, 1).Draw(t, "nanoseconds")))
}

func (m *machine) status(t *rapid.T) {
	m.model.timeOut(m.now)
	status := m.anyLimiter(t).Status(m.now)
	assert.Equal(t, m.model.state, status.State)
	want := []float64{0, 0, 0, 0}
	switch {
	case m.model.forced:
		want[3] = 1
	case m.model.state == breaker.Closed:
		calls, bad := m.model.inWindow(m.now)
		if m.model.rule.Strategy == breaker.Consecutive {
			calls = m.model.inARow()
			bad = calls
		}
		want[0], want[1] = float64(calls), float64(bad)
	case m.model.state == breaker.Open:
		want[2] = max(0, m.model.since.Add(m.model.openTime()).Sub(m.now).Seconds())
	}
	assert.Equal(t, want, status.Gauges)
	if m.model.state == breaker.Closed && (lastOf(m.model.rule) == 0 || m.now.Sub(m.model.since) < 10*time.Minute) {
		calls, _ := m.model.inWindow(m.now)
		assert.Equal(t, !m.model.forced && calls == 0, m.limiter().Idle(m.now))
	}
}

func TestBreakerBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	for i := range longtest.Of(5, 20) { // each so many sequences as rapid says
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				m := newMachine(t)
				step := func(act func(*rapid.T)) func(*rapid.T) {
					return func(t *rapid.T) {
						act(t)
						require.Equal(t, m.model.changes, m.changes)
					}
				}
				actions := map[string]func(*rapid.T){
					"a call 1":      step(m.arrive),
					"a call 2":      step(m.arrive),
					"a call 3":      step(m.arrive),
					"an end 1":      step(m.end),
					"an end 2":      step(m.end),
					"a give-back":   step(m.giveBack),
					"long-lived":    step(m.markLongLived),
					"adopt":         step(m.adopt),
					"activate":      step(m.activate),
					"old version":   step(m.old),
					"control":       step(m.control),
					"time passes":   step(m.letTimePass),
					"time comes up": step(m.letTimeComeUp),
					"status":        step(m.status),
				}
				for range 4 { // longer sequences
					t.Repeat(actions)
				}
			})
		})
	}
}
