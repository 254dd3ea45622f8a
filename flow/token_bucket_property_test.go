package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// bucketMachine is a queue of a token bucket, its model, and one who plays all
// the callers.
type bucketMachine struct {
	model    bucketModel
	queue    *flow.Queue
	compiled *flow.Compiled
	now      clock.Instant
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
	m.compiled = compile(t, m.model.rule(), 1)
	m.queue = flow.NewQueue(m.compiled, epoch)
	return m
}

func (m *bucketMachine) arrive(t *rapid.T) {
	c := &modelCall{waiter: unwoken(), n: rapid.Int64Range(1, 5).Draw(t, "n"), arrived: m.now}
	patience := rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "patience")
	want := m.model.arrive(c, patience)
	turn, decision := m.queue.Join(m.compiled, m.now, int32(c.n), patience, c.waiter)
	assert.Equal(t, want, decision)
	if decision == rule.Pass {
		assert.Equal(t, c.passAt, turn.Time())
		c.turn, c.notified = turn, true
	}
}

// poll asks for each call how it stands.
func (m *bucketMachine) poll(t *rapid.T) {
	m.model.advance(m.now)
	for i, c := range m.model.waiting {
		_, until, decision := m.queue.Poll(m.now, c.waiter)
		assert.Equal(t, rule.Wait, decision)
		if passAt, _ := m.model.passTime(c.n); i == 0 {
			assert.Equal(t, passAt.Sub(m.now), until, "when the first one passes")
		} else {
			assert.Zero(t, until, "only the first knows")
		}
	}
	for _, c := range m.model.granted {
		if c.notified {
			continue
		}
		turn, _, decision := m.queue.Poll(m.now, c.waiter)
		assert.Equal(t, rule.Pass, decision)
		assert.Equal(t, c.passAt, turn.Time())
		c.turn, c.notified = turn, true
	}
	assert.Empty(t, m.model.refused, "nobody who may wait is refused")
	assert.NoError(t, m.queue.CheckWaiters(len(m.model.waiting)))
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
		t.Skip("nothing has passed")
	}
	i := rapid.IntRange(0, len(m.model.granted)-1).Draw(t, "who")
	m.queue.GiveBack(m.now, m.model.granted[i].turn)
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
	_, remaining, _ := m.queue.Status(m.now)
	want := int64(0)
	copied := m.model
	for copied.arrive(&modelCall{n: 1, arrived: m.now}, time.Hour) != rule.Block {
		want++
	}
	assert.Equal(t, want, remaining)

	n := rapid.Int64Range(1, 5).Draw(t, "n")
	passAt, ok := m.model.planned(&modelCall{n: n, arrived: m.now})
	if !ok {
		assert.Equal(t, rule.Never, m.queue.RetryAfter(m.now, int32(n), time.Hour))
		return
	}
	assert.Equal(t, max(1, passAt.Sub(m.now)-m.model.maxWait), m.queue.RetryAfter(m.now, int32(n), time.Hour))
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
func TestBucketHoldsItsLimitOverEveryInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := bucket(rapid.Float64Range(0.01, 5000).Draw(t, "limit"), rapid.Float64Range(1, 50).Draw(t, "burst"))
		r.Window = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t, "window")
		r.MaxWait = rapid.SampledFrom([]time.Duration{0, r.Window}).Draw(t, "max wait")
		perSecond := r.Limit / r.Window.Seconds()
		l := newTestQueue(t, r)
		weight := map[int]float64{}
		for range 60 {
			gap := rapid.Float64Range(0, 3/perSecond).Draw(t, "gap")
			l.moveTo(l.now.Sub(epoch) + seconds(min(gap, 1e6)))
			n := rapid.Int32Range(1, 3).Draw(t, "n")
			weight[l.calls] = float64(n)
			if l.arrive(n) == rule.Pass && rapid.Bool().Draw(t, "give back") {
				l.giveBackLast()
			}
		}
		l.moveTo(l.now.Sub(epoch) + 2*r.Window)
		for i := range l.passes {
			var passed float64
			for _, p := range l.passes[i:] {
				passed += weight[p.id]
				length := (p.at - l.passes[i].at + 1).Seconds()
				assert.LessOrEqual(t, passed, (r.Burst+perSecond*length)*(1+1e-9))
			}
		}
	})
}
