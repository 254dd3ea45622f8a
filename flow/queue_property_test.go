package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// modelCall is a call as the model sees it: waiting, or passed.
type modelCall struct {
	waiter   *flow.Waiter
	n        int64
	arrived  clock.Instant
	passAt   clock.Instant
	turn     flow.Turn
	notified bool // the call knows that it has passed
}

// queueModel computes every pass anew, one call after the other.
type queueModel struct {
	limit   int64 // tokens per second
	maxWait time.Duration

	since   clock.Instant // no pass was planned anew before
	granted []*modelCall  // the last of them can still give back
	waiting []*modelCall
	refused []*modelCall // by a change of the rule
}

func (m *queueModel) cost(n int64) time.Duration {
	if m.limit == 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return time.Duration(n) * time.Second / time.Duration(m.limit)
}

// next returns when a call passes that follows another which passed then, if
// there is one.
func (m *queueModel) next(c *modelCall, last *clock.Instant) clock.Instant {
	passAt := max(c.arrived, m.since)
	if last != nil {
		passAt = max(passAt, last.Add(m.cost(c.n)))
	}
	return passAt
}

func (m *queueModel) last() *clock.Instant {
	if len(m.granted) == 0 {
		return nil
	}
	return &m.granted[len(m.granted)-1].passAt
}

// advance refuses and grants what it has to by now.
func (m *queueModel) advance(now clock.Instant) {
	for len(m.waiting) > 0 {
		head := m.waiting[0]
		switch passAt := m.next(head, m.last()); {
		case m.limit == 0 || passAt.Sub(head.arrived) > m.maxWait:
			m.refused = append(m.refused, head)
		case passAt > now:
			return
		default:
			head.passAt = passAt
			m.granted = append(m.granted, head)
		}
		m.waiting = m.waiting[1:]
	}
}

// planned returns when one more call would pass.
func (m *queueModel) planned(c *modelCall) clock.Instant {
	last := m.last()
	for _, w := range m.waiting {
		passAt := m.next(w, last)
		last = &passAt
	}
	return m.next(c, last)
}

// arrive decides on a call.
func (m *queueModel) arrive(c *modelCall, patience time.Duration) rule.Decision {
	m.advance(c.arrived)
	if m.limit == 0 {
		return rule.Block
	}
	passAt := m.planned(c)
	switch {
	case len(m.waiting) == 0 && passAt <= c.arrived:
		c.passAt = passAt
		m.granted = append(m.granted, c)
		return rule.Pass
	case passAt.Sub(c.arrived) > min(patience, m.maxWait):
		return rule.Block
	}
	m.waiting = append(m.waiting, c)
	return rule.Wait
}

// replan plans the waiting calls anew from now on.
func (m *queueModel) replan(now clock.Instant) {
	m.since = now
	m.advance(now - 1) // refuses, if need be, but grants nothing
}

// queueMachine is a queue, its model, and one who plays all the callers.
type queueMachine struct {
	model    queueModel
	queue    *flow.Queue
	compiled *flow.Compiled
	version  uint64
	now      clock.Instant
}

func (q *queueMachine) rule() flow.Rule { return throttle(float64(q.model.limit), q.model.maxWait) }

// poll asks for each call how it stands.
func (q *queueMachine) poll(t *rapid.T) {
	q.model.advance(q.now)
	for i, c := range q.model.waiting {
		_, until, decision := q.queue.Poll(q.now, c.waiter)
		assert.Equal(t, rule.Wait, decision)
		if i == 0 {
			assert.Equal(t, q.model.next(c, q.model.last()).Sub(q.now), until, "when the first one passes")
		} else {
			assert.Zero(t, until, "only the first knows")
		}
	}
	for _, c := range q.model.granted {
		if c.notified {
			continue
		}
		turn, _, decision := q.queue.Poll(q.now, c.waiter)
		assert.Equal(t, rule.Pass, decision)
		assert.Equal(t, c.passAt, turn.Time())
		c.turn, c.notified = turn, true
	}
	for _, c := range q.model.refused {
		_, _, decision := q.queue.Poll(q.now, c.waiter)
		assert.Equal(t, rule.Block, decision)
	}
	assert.NoError(t, q.queue.CheckWaiters(len(q.model.waiting)))
}

func (q *queueMachine) arrive(t *rapid.T) {
	c := &modelCall{waiter: unwoken(), n: int64(rapid.IntRange(1, 3).Draw(t, "n")), arrived: q.now}
	patience := rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "patience")
	want := q.model.arrive(c, patience)
	turn, decision := q.queue.Join(q.compiled, q.now, int32(c.n), patience, c.waiter)
	assert.Equal(t, want, decision)
	if decision == rule.Pass {
		assert.Equal(t, c.passAt, turn.Time())
		c.turn, c.notified = turn, true
	}
}

func (q *queueMachine) leave(t *rapid.T) {
	q.poll(t)
	if len(q.model.waiting) == 0 {
		t.Skip("nobody waits")
	}
	i := rapid.IntRange(0, len(q.model.waiting)-1).Draw(t, "who")
	_, left := q.queue.Leave(q.now, q.model.waiting[i].waiter)
	assert.True(t, left)
	q.model.waiting = append(q.model.waiting[:i:i], q.model.waiting[i+1:]...)
	if i == 0 {
		q.model.replan(q.now)
	}
}

func (q *queueMachine) giveBack(t *rapid.T) {
	q.poll(t)
	last := len(q.model.granted) - 1
	if last < 0 {
		t.Skip("nothing has passed")
	}
	i := rapid.IntRange(max(0, last-1), last).Draw(t, "who")
	q.queue.GiveBack(q.now, q.model.granted[i].turn)
	if i == last {
		q.model.granted = q.model.granted[:last]
		q.model.replan(q.now)
	}
}

func (q *queueMachine) change(t *rapid.T) {
	q.model.advance(q.now)
	q.model.limit = rapid.SampledFrom([]int64{0, 1, 2, 5, 10, 1000}).Draw(t, "limit")
	q.model.maxWait = rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second}).Draw(t, "max wait")
	q.model.replan(q.now)
	old := q.compiled
	q.version++
	q.compiled = compile(t, q.rule(), q.version)
	q.queue.Adopt(q.compiled, q.now)
	_, decision := q.queue.Take(old, q.now, 1)
	assert.Equal(t, rule.Stale, decision)
}

func (q *queueMachine) letTimePass(t *rapid.T) {
	ms := rapid.SampledFrom([]int{0, 1, 99, 100, 500, 1000, 3000, 20_000}).Draw(t, "ms")
	q.now = q.now.Add(time.Duration(ms) * time.Millisecond)
}

// take asks for a turn without waiting.
func (q *queueMachine) take(n int32) rule.Decision {
	turn, decision := q.queue.Take(q.compiled, q.now, n)
	if decision == rule.Pass {
		c := &modelCall{n: int64(n), arrived: q.now, turn: turn, notified: true}
		q.model.advance(q.now)
		c.passAt = q.model.planned(c)
		q.model.granted = append(q.model.granted, c)
	}
	return decision
}

// retry comes again after it was refused, when it is told to and just before.
func (q *queueMachine) retry(t *rapid.T) {
	q.poll(t)
	n := rapid.Int32Range(1, 3).Draw(t, "n")
	if q.take(n) != rule.Block {
		t.Skip("it is not refused")
	}
	alone := len(q.model.waiting) == 0
	wait := q.queue.RetryAfter(q.now, n, time.Hour)
	if q.model.limit == 0 {
		assert.Equal(t, rule.Never, wait)
		return
	}
	require.Positive(t, wait)
	q.now = q.now.Add(wait - 1)
	if wait > 1 && alone { // of those before it, some may be refused in time
		assert.Equal(t, rule.Block, q.take(n), "a nanosecond too early")
	}
	q.now = q.now.Add(1)
	assert.NotEqual(t, rule.Block, q.take(n), "after %v", wait)
}

func TestQueueBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := &queueMachine{
			model: queueModel{limit: rapid.SampledFrom([]int64{1, 2, 10}).Draw(t, "limit"), maxWait: 10 * time.Second},
			now:   epoch,
		}
		q.compiled = compile(t, q.rule(), 0)
		q.queue = flow.NewQueue(q.compiled, epoch)
		t.Repeat(map[string]func(*rapid.T){
			"arrive":      q.arrive,
			"leave":       q.leave,
			"give back":   q.giveBack,
			"change":      q.change,
			"time passes": q.letTimePass,
			"poll":        q.poll,
			"retry":       q.retry,
		})
		q.poll(t)
	})
}

// Whatever the limit and the times of arrival: calls pass as far apart as their
// tokens take, in the order of arrival, and never further off than MaxWait.
func TestQueueSpacesItsPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(0.1, 2000).Draw(t, "limit")
		maxWait := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "max wait"))
		l := newTestQueue(t, throttle(limit, maxWait))
		arrived := make(map[int]time.Duration)
		weight := make(map[int]float64)
		gap := rapid.Float64Range(0, 3/limit)
		for range 60 {
			l.moveTo(l.now.Sub(epoch) + seconds(gap.Draw(t, "gap")))
			n := rapid.Int32Range(1, 3).Draw(t, "n")
			arrived[l.calls], weight[l.calls] = l.now.Sub(epoch), float64(n)
			l.arrive(n)
		}
		l.moveTo(time.Hour)
		assert.NoError(t, l.queue.CheckWaiters(0))
		for i, p := range l.passes {
			assert.LessOrEqual(t, p.at-arrived[p.id], maxWait)
			if i > 0 {
				// Calls pass at whole nanoseconds, their distances are not.
				assert.Greater(t, (p.at - l.passes[i-1].at + 1).Seconds(), weight[p.id]/limit*(1-1e-12))
				assert.Greater(t, p.id, l.passes[i-1].id)
			}
		}
	})
}
