package core_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// modelCall is a call that is on its way.
type modelCall struct {
	name, origin string
	tokens       int
	patience     time.Duration // 0: it has no deadline
	arrival      *core.Arrival
	cancel       context.CancelFunc
	cancelled    bool
	waited       bool
	queues       bool // it had several queues to wait in
	joined       int  // when it began to wait: so many sets had been loaded
	woken        bool
	due          clock.Instant // 0: it is woken
}

// lateDeadline is a context whose deadline is on the calendar of a virtual clock.
type lateDeadline struct {
	context.Context
	at time.Time
}

func (d lateDeadline) Deadline() (time.Time, bool) { return d.at, true }

func (m *model) calls(n int) {
	m.last = modelCall{
		name:     drawName(m.t, "name"),
		origin:   rapid.SampledFrom(modelOrigins).Draw(m.t, "from"),
		tokens:   rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(m.t, "tokens"),
		patience: rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond}).Draw(m.t, "patience"),
	}
	m.repeat(n)
}

// repeat makes n calls like the last one.
func (m *model) repeat(n int) {
	for range n {
		m.account()
		call := m.last
		ctx, cancel := context.WithCancel(context.Background())
		call.cancel = cancel
		if call.patience > 0 {
			ctx = lateDeadline{ctx, m.clock.Now().Add(call.patience).Time()}
		}
		if rapid.Bool().Draw(m.t, "enters") {
			m.enter(ctx, &call)
		} else {
			call.arrival = m.engine.Arrive(ctx, call.name, func() { call.woken = true }, core.Origin(call.origin), core.Tokens(call.tokens))
			m.waiting = append(m.waiting, &call)
			m.proceed(&call)
		}
		m.settle()
	}
}

// enter makes a call that gives up rather than wait: Entry has ways of its own for
// those that need not.
func (m *model) enter(ctx context.Context, call *modelCall) {
	call.cancel()
	call.cancelled = true
	call.queues = len(m.queuesOf(call)) > 1
	passAt, known := m.passTimeOf(call)
	guard, err := m.engine.Entry(ctx, call.name, core.Origin(call.origin), core.Tokens(call.tokens))
	if err == nil {
		m.inOrder(call)
	}
	m.decided(call, &guard, err, passAt, known)
}

// comeBack makes calls like the last ones, after a pause in which what nobody calls
// is forgotten.
func (m *model) comeBack() {
	if m.last.name == "" {
		m.t.Skip("nobody was there")
	}
	m.advance(time.Duration(rapid.IntRange(61, 115).Draw(m.t, "pause")) * time.Second)
	m.repeat(6)
}

// proceed goes on with a call, once.
func (m *model) proceed(call *modelCall) {
	call.woken = false
	call.queues = call.queues || len(m.queuesOf(call)) > 1
	passAt, known := m.passTimeOf(call)
	after, done := call.arrival.Proceed()
	if !done {
		require.False(m.t, call.cancelled, "a cancelled call waits")
		if !call.waited {
			m.want.Waiting++
			call.joined = m.loads
		}
		if known {
			require.InDelta(m.t, passAt.Sub(m.clock.Now()), after, 2, "nanoseconds until the pass of %+v", call)
		}
		call.waited = true
		call.due = 0
		if after > 0 {
			call.due = m.clock.Now().Add(after)
		}
		m.account()
		return
	}
	guard, err := call.arrival.Result()
	if err == nil {
		m.inOrder(call)
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(c *modelCall) bool { return c == call })
	call.cancel()
	if call.waited {
		m.want.Waiting--
	}
	m.decided(call, guard, err, passAt, known)
}

func (m *model) decided(call *modelCall, guard *core.Guard, err error, passAt clock.Instant, known bool) {
	var block *core.BlockError
	switch {
	case err == nil:
		m.want.Passed++
		m.want.InFlight++
		m.guards = append(m.guards, guard)
		m.passed(call, m.account(), guard.WouldBlock())
	case errors.As(err, &block):
		m.want.Blocked++
		if known {
			m.tooLate(call, passAt, block)
		}
		m.blocked(call, m.account(), block)
	default:
		require.True(m.t, call.cancelled, "%v", err)
		require.ErrorIs(m.t, err, context.Canceled)
		m.account()
	}
}

func (m *model) cancel() {
	if len(m.waiting) == 0 {
		m.t.Skip("nobody waits")
	}
	call := rapid.SampledFrom(m.waiting).Draw(m.t, "call")
	call.cancelled = true
	call.cancel()
	m.proceed(call)
	m.settle()
}

func (m *model) exit() {
	if len(m.guards) == 0 {
		m.t.Skip("no call under way")
	}
	i := rapid.IntRange(0, len(m.guards)-1).Draw(m.t, "guard")
	guard := m.guards[i]
	m.guards = slices.Delete(m.guards, i, i+1)
	m.want.InFlight--
	m.want.Completed++
	if rapid.Bool().Draw(m.t, "failed") {
		guard.Fail(context.DeadlineExceeded)
		m.want.Failed++
	}
	guard.Exit()
	guard.Exit()
	m.account()
}

// settle goes on with the calls that can.
func (m *model) settle() {
	ready := func(c *modelCall) bool { return c.woken || c.due != 0 && c.due <= m.clock.Now() }
	for i := slices.IndexFunc(m.waiting, ready); i >= 0; i = slices.IndexFunc(m.waiting, ready) {
		m.proceed(m.waiting[i])
	}
}

// advance moves time from one pass to the next.
func (m *model) advance(d time.Duration) {
	end := m.clock.Now().Add(d)
	for m.clock.Now() < end {
		next := end
		for _, c := range m.waiting {
			if c.due != 0 {
				next = min(next, c.due)
			}
		}
		m.clock.Advance(next.Sub(m.clock.Now()))
		m.settle()
	}
	m.account()
}
