package flow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// rankedModel is a throttle with calls of several priorities, written plainly: a list of
// calls in the order in which they came.
type rankedModel struct {
	spacing time.Duration // of tokens
	maxWait time.Duration

	waiting    []*rankedModelCall
	head       *rankedModelCall // planned to pass at headAt
	headAt     clock.Instant
	last       clock.Instant
	passedOver int
	mixed      bool
}

type rankedModelCall struct {
	waiter   *flow.Waiter
	priority rule.Priority
	n        int64
	arrived  clock.Instant
	passAt   clock.Instant
	passed   bool
	refused  bool
}

func (m *rankedModel) cost(n int64) time.Duration { return time.Duration(n) * m.spacing }

// first returns the call to serve next.
func (m *rankedModel) first() *rankedModelCall {
	if len(m.waiting) == 0 {
		return nil
	}
	highest := m.waiting[0]
	var lower *rankedModelCall
	for _, c := range m.waiting {
		if c.priority > highest.priority {
			highest = c
		}
	}
	for _, c := range m.waiting {
		if c.priority < highest.priority && lower == nil {
			lower = c
		}
	}
	if lower != nil && m.passedOver >= 7 {
		return lower
	}
	return highest
}

func (m *rankedModel) remove(c *rankedModelCall) {
	m.waiting = slices.DeleteFunc(m.waiting, func(w *rankedModelCall) bool { return w == c })
	m.mixed = m.mixed && len(m.waiting) > 0
	if c == m.head {
		m.head = m.first()
	}
}

// plan plans when the head passes, and refuses those that cannot pass in time.
func (m *rankedModel) plan(now clock.Instant) {
	for m.head != nil {
		m.headAt = max(m.last.Add(m.cost(m.head.n)), now, m.head.arrived)
		if m.headAt.Sub(m.head.arrived) <= m.maxWait {
			return
		}
		m.head.refused = true
		m.remove(m.head)
	}
}

// serve counts who gets a pass.
func (m *rankedModel) serve(priority rule.Priority) {
	lowerWaits := slices.ContainsFunc(m.waiting, func(c *rankedModelCall) bool { return c.priority < priority })
	higherWaits := slices.ContainsFunc(m.waiting, func(c *rankedModelCall) bool { return c.priority > priority })
	if lowerWaits && !higherWaits {
		m.passedOver++
	} else {
		m.passedOver = 0
	}
}

func (m *rankedModel) advance(now clock.Instant) {
	for m.head != nil && m.headAt <= now {
		c := m.head
		c.passAt, c.passed, m.last = m.headAt, true, m.headAt
		m.serve(c.priority)
		m.remove(c)
		m.plan(c.passAt)
	}
}

// overtakes says whether a call would be the first.
func (m *rankedModel) overtakes(p rule.Priority) bool {
	return m.head == nil || m.passedOver < 7 &&
		!slices.ContainsFunc(m.waiting, func(c *rankedModelCall) bool { return c.priority >= p })
}

// expected returns when a call would pass if no other call came, all of one token.
func (m *rankedModel) expected(c *rankedModelCall) clock.Instant {
	ahead := *m
	ahead.waiting = slices.Clone(m.waiting)
	ahead.maxWait = 1 << 60
	copied := *c
	ahead.join(&copied)
	for !copied.passed {
		head := *ahead.head
		ahead.headAt = max(ahead.last.Add(m.cost(head.n)), ahead.headAt, head.arrived)
		if ahead.head == &copied {
			return max(ahead.last.Add(m.cost(head.n)), head.arrived)
		}
		ahead.last = max(ahead.last.Add(m.cost(head.n)), head.arrived)
		ahead.serve(head.priority)
		ahead.remove(ahead.head)
	}
	return copied.passAt
}

func (m *rankedModel) join(c *rankedModelCall) {
	isHead := m.overtakes(c.priority)
	m.mixed = m.mixed || len(m.waiting) > 0 && m.head.priority != c.priority
	m.waiting = append(m.waiting, c)
	if isHead {
		m.head = c
	}
}

// rankedMachine is a queue beside its model.
type rankedMachine struct {
	model    rankedModel
	queue    *flow.Queue
	compiled *flow.Compiled
	now      clock.Instant
	all      []*rankedModelCall // that have waited and not heard how that ended
	alike    bool               // all calls take one token
}

func (q *rankedMachine) arrive(t *rapid.T) {
	m := &q.model
	m.advance(q.now)
	c := &rankedModelCall{
		priority: rapid.SampledFrom([]rule.Priority{-2, -1, 0, 0, 1, 2}).Draw(t, "priority"), n: 1, arrived: q.now,
	}
	if !q.alike {
		c.n = int64(rapid.IntRange(1, 3).Draw(t, "n"))
	}
	c.waiter = unwoken().WithPriority(c.priority)
	turn, decision := q.queue.Join(q.compiled, q.now, int32(c.n), time.Hour, c.waiter)
	isTop := !slices.ContainsFunc(m.waiting, func(w *rankedModelCall) bool { return w.priority > c.priority })
	switch decision {
	case rule.Pass:
		assert.True(t, m.overtakes(c.priority))
		assert.GreaterOrEqual(t, q.now, m.last.Add(m.cost(c.n)))
		assert.Equal(t, q.now, turn.Time())
		m.last = q.now
		if len(m.waiting) > 0 {
			m.passedOver++
			m.head = m.first()
		}
		m.plan(q.now)
	case rule.Wait:
		if expected := m.expected(c); q.alike {
			assert.LessOrEqual(t, expected.Sub(q.now), m.maxWait)
			assert.False(t, m.overtakes(c.priority) && expected <= q.now, "it need not wait")
		}
		m.join(c)
		q.all = append(q.all, c)
		if m.head == c {
			m.plan(q.now)
		}
	default:
		if expected := m.expected(c); q.alike && isTop {
			assert.Greater(t, expected.Sub(q.now), m.maxWait)
		}
	}
}

// poll asks for each call how it stands.
func (q *rankedMachine) poll(t *rapid.T) {
	m := &q.model
	m.advance(q.now)
	still := q.all[:0]
	for _, c := range q.all {
		if !c.passed && !c.refused && c != m.head && m.mixed && q.now.Sub(c.arrived) >= m.maxWait {
			c.refused = true
			m.remove(c)
		}
		turn, after, decision := q.queue.Poll(q.now, c.waiter)
		switch {
		case c.passed:
			assert.Equal(t, rule.Pass, decision)
			assert.Equal(t, c.passAt, turn.Time())
			assert.LessOrEqual(t, c.passAt.Sub(c.arrived), m.maxWait)
			continue
		case c.refused:
			assert.Equal(t, rule.Block, decision)
			continue
		case c == m.head:
			assert.Equal(t, m.headAt.Sub(q.now), after)
		case m.mixed:
			assert.Equal(t, m.maxWait-q.now.Sub(c.arrived), after)
		default:
			assert.Zero(t, after)
		}
		assert.Equal(t, rule.Wait, decision)
		still = append(still, c)
	}
	q.all = still
	assert.NoError(t, q.queue.CheckWaiters(len(m.waiting)))
}

func (q *rankedMachine) leave(t *rapid.T) {
	q.poll(t)
	if len(q.all) == 0 {
		t.Skip("no call waits")
	}
	c := q.all[rapid.IntRange(0, len(q.all)-1).Draw(t, "who")]
	_, left := q.queue.Leave(q.now, c.waiter)
	assert.True(t, left)
	q.all = slices.DeleteFunc(q.all, func(w *rankedModelCall) bool { return w == c })
	wasHead := c == q.model.head
	q.model.remove(c)
	if wasHead {
		q.model.plan(q.now)
	}
}

func TestQueueOfSeveralPrioritiesBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{1, 2, 10, 100}).Draw(t, "limit")
		q := &rankedMachine{
			now: epoch, alike: rapid.Bool().Draw(t, "all calls take one token"),
			model: rankedModel{
				spacing: time.Second / time.Duration(limit), last: epoch.Add(-time.Hour),
				maxWait: rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second}).Draw(t, "max wait"),
			},
		}
		q.compiled = compile(t, throttle(float64(limit), q.model.maxWait), 1)
		q.queue = flow.NewQueue(q.compiled, epoch)
		t.Repeat(map[string]func(*rapid.T){
			"arrive": q.arrive,
			"several arrive": func(t *rapid.T) {
				for range rapid.IntRange(2, 20).Draw(t, "calls") {
					q.arrive(t)
				}
			},
			"leave": q.leave,
			"time passes": func(t *rapid.T) {
				ms := rapid.SampledFrom([]int{0, 1, 9, 10, 99, 100, 500, 1000, 3000, 20_000}).Draw(t, "ms")
				q.now = q.now.Add(time.Duration(ms) * time.Millisecond)
			},
			"poll": q.poll,
		})
		q.poll(t)
	})
}
