package pending_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/rule"
)

// place has one place, which is free at an instant.
type place struct {
	mu   sync.Mutex
	free clock.Instant
	left bool // the call has given up while it waited

	given rule.Ticket // back
	back  int
	call  pending.Call
}

func (p *place) Look(now clock.Instant) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.call.Waits() && now < p.free {
		return p.free.Sub(now)
	}
	p.end(func() { p.call.Grant(7) })
	return 0
}

func (p *place) Withdraw(clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = p.call.Waits()
	p.end(p.call.End)
}

func (p *place) GiveBack(_ clock.Instant, t rule.Ticket) { p.given, p.back = t, p.back+1 }

// end ends the wait unless it has ended. The mutex is held.
func (p *place) end(how func()) {
	if p.call.Waits() {
		how()
	}
}

func newPlace() *place {
	p := &place{free: 100}
	p.call.Begin(p, func() {})
	return p
}

func TestHowAWaitEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end   func(*pending.Call)
		now   clock.Instant
		want  rule.Decision
		after time.Duration
	}{
		"it goes on":        {end: func(*pending.Call) {}, now: 40, want: rule.Wait, after: 60},
		"its time has come": {end: func(*pending.Call) {}, now: 100, want: rule.Pass},
		"it was granted":    {end: func(c *pending.Call) { c.Grant(7) }, now: 40, want: rule.Pass},
		"it was refused":    {end: (*pending.Call).Refuse, now: 100, want: rule.Block},
		"its rule is gone":  {end: (*pending.Call).Release, now: 100, want: rule.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace()
			test.end(&p.call)
			ticket, after, decision := p.call.Poll(test.now)
			assert.Equal(t, test.want, decision)
			assert.Equal(t, test.after, after)
			if decision == rule.Pass {
				assert.EqualValues(t, 7, ticket)
			}
			assert.Equal(t, decision == rule.Wait, p.call.Waits())
		})
	}
}

func TestCallThatGivesUpLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		p := newPlace()
		p.call.Leave(10)
		assert.True(t, p.left)
		assert.Zero(t, p.back)
		p.call.Leave(10)
		assert.Zero(t, p.back)
	})
	t.Run("what it was granted goes back once", func(t *testing.T) {
		t.Parallel()
		p := newPlace()
		p.call.Grant(7)
		p.call.Leave(10)
		p.call.Leave(10)
		assert.EqualValues(t, 7, p.given)
		assert.Equal(t, 1, p.back)
	})
	t.Run("what it has collected is its own", func(t *testing.T) {
		t.Parallel()
		p := newPlace()
		p.call.Grant(7)
		_, _, decision := p.call.Poll(10)
		require.Equal(t, rule.Pass, decision)
		p.call.Leave(10)
		assert.Zero(t, p.back)
	})
	t.Run("nothing was granted to one that was refused", func(t *testing.T) {
		t.Parallel()
		p := newPlace()
		p.call.Refuse()
		p.call.Leave(10)
		assert.Zero(t, p.back)
	})
}

// Whatever the interleaving, what is granted is collected or goes back: one of the two.
func TestWhatIsGrantedIsCollectedOrGivenBack(t *testing.T) {
	t.Parallel()
	var collected, back atomic.Int64
	const calls = 2000
	for i := range calls {
		p := newPlace()
		var both sync.WaitGroup
		both.Go(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.end(func() { p.call.Grant(7) })
		})
		both.Go(func() {
			if i%2 == 0 {
				if _, _, decision := p.call.Poll(0); decision == rule.Pass {
					collected.Add(1)
				}
			}
			p.call.Leave(0)
		})
		both.Wait()
		if p.back > 0 {
			back.Add(int64(p.back))
		} else if p.left {
			collected.Add(1) // nothing was granted
		}
	}
	assert.EqualValues(t, calls, collected.Load()+back.Load())
}
