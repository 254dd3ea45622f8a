package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// bucketMachine is a queue of a token bucket, its model, and one who plays all
// the callers.
type bucketMachine struct {
	model bucketModel
	queue *flow.Queue
	terms *flow.Terms
	now   clock.Instant
}

func newBucketMachine(t *rapid.T, waits []time.Duration) *bucketMachine {
	m := &bucketMachine{now: epoch, model: bucketModel{
		limit:     rapid.SampledFrom([]int64{0, 1, 3, 7, 10, 60}).Draw(t, "limit"),
		burst:     rapid.Int64Range(1, 12).Draw(t, "burst"),
		overdraft: rapid.Bool().Draw(t, "overdraft"),
		maxWait:   rapid.SampledFrom(waits).Draw(t, "max wait"),
		at:        epoch,
	}}
	m.model.units = m.model.burst * unitsPerToken
	m.terms = compile(t, m.model.rule(), 1)
	m.queue = flow.NewQueue(m.terms, epoch)
	return m
}

func (m *bucketMachine) arrive(t *rapid.T) {
	c := &modelCall{waiter: unwoken(), n: rapid.Int64Range(1, 5).Draw(t, "n"), arrived: m.now}
	patience := rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "patience")
	want := m.model.arrive(c, patience)
	ticket, decision := m.queue.Join(m.terms, m.now, int32(c.n), patience, c.waiter)
	assert.Equal(t, want, decision)
	if decision == flow.Passed {
		assert.Equal(t, c.turn, ticket.Turn())
		c.ticket, c.notified = ticket, true
	}
}

// poll asks for each call how it stands.
func (m *bucketMachine) poll(t *rapid.T) {
	m.model.advance(m.now)
	for i, c := range m.model.waiting {
		_, until, decision := m.queue.Turn(m.now, c.waiter)
		assert.Equal(t, flow.Queued, decision)
		if turn, _ := m.model.turn(c.n); i == 0 {
			assert.Equal(t, turn.Sub(m.now), until, "the first one's turn")
		} else {
			assert.Zero(t, until, "only the first knows")
		}
	}
	for _, c := range m.model.granted {
		if c.notified {
			continue
		}
		ticket, _, decision := m.queue.Turn(m.now, c.waiter)
		assert.Equal(t, flow.Passed, decision)
		assert.Equal(t, c.turn, ticket.Turn())
		c.ticket, c.notified = ticket, true
	}
	assert.Empty(t, m.model.refused, "nobody who may wait is refused")
	assert.NoError(t, m.queue.CheckLine(len(m.model.waiting)))
}

func (m *bucketMachine) leave(t *rapid.T) {
	m.poll(t)
	if len(m.model.waiting) == 0 {
		t.Skip("nobody waits")
	}
	i := rapid.IntRange(0, len(m.model.waiting)-1).Draw(t, "who")
	_, left := m.queue.Leave(m.now, m.model.waiting[i].waiter)
	assert.True(t, left)
	m.model.waiting = append(m.model.waiting[:i:i], m.model.waiting[i+1:]...)
}

func (m *bucketMachine) giveBack(t *rapid.T) {
	m.poll(t)
	if len(m.model.granted) == 0 {
		t.Skip("nobody has had a turn")
	}
	i := rapid.IntRange(0, len(m.model.granted)-1).Draw(t, "who")
	m.queue.GiveBack(m.now, m.model.granted[i].ticket)
	m.model.giveBack(i)
}

func (m *bucketMachine) letTimePass(t *rapid.T) {
	m.now = m.now.Add(rapid.SampledFrom([]time.Duration{
		1, 2, time.Millisecond, 16_666_666, 142_857_143, 100 * time.Millisecond, 333_333_333, time.Second, 20 * time.Second,
	}).Draw(t, "time"))
}

// ask compares the answers with what then comes true.
func (m *bucketMachine) ask(t *rapid.T) {
	m.poll(t)
	_, room, _ := m.queue.Status(m.now)
	want := int64(0)
	copied := m.model
	for copied.arrive(&modelCall{n: 1, arrived: m.now}, time.Hour) != flow.Refused {
		want++
	}
	assert.Equal(t, want, room)

	n := rapid.Int64Range(1, 5).Draw(t, "n")
	turn, ok := m.model.planned(&modelCall{n: n, arrived: m.now})
	if !ok {
		assert.Equal(t, flow.Never, m.queue.RetryAfter(m.now, int32(n), time.Hour))
		return
	}
	assert.Equal(t, max(1, turn.Sub(m.now)-m.model.maxWait), m.queue.RetryAfter(m.now, int32(n), time.Hour))
}

func TestBucketBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newBucketMachine(t, []time.Duration{0, time.Second, 5 * time.Second})
		t.Repeat(map[string]func(*rapid.T){
			"arrive":       m.arrive,
			"arrive again": m.arrive,
			"leave":        m.leave,
			"give back":    m.giveBack,
			"time passes":  m.letTimePass,
			"poll":         m.poll,
			"ask":          m.ask,
		})
		m.poll(t)
	})
}

// In any interval of length t no more than burst + limit·t tokens pass, a
// nanosecond's worth aside, whatever the rule and the times.
func TestBucketHoldsItsCeilingOverEveryInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := bucket(rapid.Float64Range(0.01, 5000).Draw(t, "limit"), rapid.Float64Range(1, 50).Draw(t, "burst"))
		rule.Window = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t, "window")
		rule.MaxWait = rapid.SampledFrom([]time.Duration{0, rule.Window}).Draw(t, "max wait")
		perSecond := rule.Limit / rule.Window.Seconds()
		l := newTestQueue(t, rule)
		weight := map[int]float64{}
		for range 60 {
			gap := rapid.Float64Range(0, 3/perSecond).Draw(t, "gap")
			l.moveTo(l.now.Sub(epoch) + seconds(min(gap, 1e6)))
			n := rapid.Int32Range(1, 3).Draw(t, "n")
			weight[l.calls] = float64(n)
			if l.arrive(n) == flow.Passed && rapid.Bool().Draw(t, "give back") {
				l.giveBackLast()
			}
		}
		l.moveTo(l.now.Sub(epoch) + 2*rule.Window)
		for i := range l.turns {
			var passed float64
			for _, turn := range l.turns[i:] {
				passed += weight[turn.id]
				length := (turn.at - l.turns[i].at + 1).Seconds()
				assert.LessOrEqual(t, passed, (rule.Burst+perSecond*length)*(1+1e-9))
			}
		}
	})
}
