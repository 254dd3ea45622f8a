package adaptive_test

import (
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// endless is when a context without a deadline ends.
const endless = clock.Instant(math.MaxInt64)

// latencyLimiter is what a limiter of the strategy latency can do.
type latencyLimiter interface {
	rule.Queue
	rule.Finisher
	rule.Activator
	rule.Retirer
}

// gateScene is a limiter of the strategy latency and the calls to it, on a time that the
// test moves.
type gateScene struct {
	t       require.TestingT
	rule    adaptive.Rule
	limiter latencyLimiter
	version uint64
	now     clock.Instant
}

func newGateScene(t require.TestingT, r adaptive.Rule) *gateScene {
	if r.Resource == "" && !r.Inbound {
		r.Resource = "r"
	}
	require.Empty(t, adaptive.Kind().Faults(r))
	s := &gateScene{t: t, rule: r, version: 1, now: epoch}
	s.limiter = adaptive.Kind().Of(adaptive.Kind().WithDefaults(r)).NewLimiter(s.env()).(latencyLimiter)
	return s
}

func (s *gateScene) env() rule.Env {
	return rule.Env{Version: s.version, Now: s.now, Seed: 1, Signals: signals{}, Changed: func(clock.Instant, string, string, string) {}}
}

// reload brings a changed rule into force.
func (s *gateScene) reload(change func(*adaptive.Rule)) {
	change(&s.rule)
	require.Empty(s.t, adaptive.Kind().Faults(s.rule))
	s.version++
	s.limiter = adaptive.Kind().Of(adaptive.Kind().WithDefaults(s.rule)).Adopt(s.limiter, s.env()).(latencyLimiter)
	s.limiter.Activate(s.now)
}

// gates are the gauges of a limiter of the strategy latency.
type gates struct {
	limit, inFlight, queued int
	baseline                float64
	shed                    int // of all priorities
}

func (s *gateScene) gauges() gates {
	g := s.limiter.Status(s.now).Gauges
	all := gates{limit: int(g[0]), inFlight: int(g[1]), queued: int(g[2]), baseline: g[3]}
	for i, gauge := range adaptive.Kind().Gauges() {
		if gauge.Name == "shed" {
			all.shed += int(g[i])
		}
	}
	return all
}

// gateCall is a call of a gateScene.
type gateCall struct {
	scene    *gateScene
	by       latencyLimiter
	priority rule.Priority
	inbound  bool
	passedAt clock.Instant
	ticket   rule.Ticket
	decision rule.Decision
	waiter   rule.Waiter
	woken    bool
}

// call makes a call of a priority.
func (s *gateScene) call(p rule.Priority) *gateCall { return s.callBy(s.limiter, p, true) }

func (s *gateScene) callBy(l latencyLimiter, p rule.Priority, inbound bool) *gateCall {
	c := &gateCall{scene: s, by: l, priority: p, inbound: inbound, passedAt: s.now}
	call := rule.Call{Now: s.now, Tokens: 1}
	call.SetCaller(p, inbound)
	if c.ticket, c.decision = l.Acquire(call); c.decision == rule.Wait {
		c.waiter, c.ticket, c.decision = l.Join(call, rule.Patience{
			Since: s.now, Until: endless, Wake: func() { c.woken = true },
		})
	}
	return c
}

// poll asks how the wait stands. It returns after how long to ask again.
func (c *gateCall) poll() time.Duration {
	var after time.Duration
	c.woken = false
	if c.ticket, after, c.decision = c.waiter.Poll(c.scene.now); c.decision != rule.Wait {
		c.waiter = nil
	}
	if c.decision == rule.Pass {
		c.passedAt = c.scene.now
	}
	return after
}

func (c *gateCall) end() { c.endAs(false, false) }

func (c *gateCall) endAs(failed, ignored bool) {
	c.by.Done(c.ticket, rule.Exit{Now: c.scene.now, Start: c.passedAt, Failed: failed, Ignored: ignored})
}

// run makes calls at a rate, each of which takes as long as a service with some workers
// needs for it, for a time. It returns how many passed and how many were refused.
func (s *gateScene) run(rate float64, workers int, took, length time.Duration) (passed, refused int) {
	var underWay, waiting []*gateCall
	var free []clock.Instant // when each worker is free again
	for range workers {
		free = append(free, s.now)
	}
	ends := map[*gateCall]clock.Instant{}
	begin := func(c *gateCall) {
		passed++
		worker := 0
		for i := range free {
			if free[i] < free[worker] {
				worker = i
			}
		}
		free[worker] = max(free[worker], s.now).Add(took)
		ends[c] = free[worker]
		underWay = append(underWay, c)
	}
	settle := func() {
		kept := waiting[:0]
		for _, c := range waiting {
			switch c.poll(); c.decision {
			case rule.Wait:
				kept = append(kept, c)
			case rule.Pass:
				begin(c)
			default:
				refused++
			}
		}
		waiting = kept
	}
	until, next := s.now.Add(length), s.now
	for s.now < until {
		first := -1
		for i, c := range underWay {
			if first < 0 || ends[c] < ends[underWay[first]] {
				first = i
			}
		}
		if first >= 0 && ends[underWay[first]] <= next {
			c := underWay[first]
			s.now = ends[c]
			underWay = append(underWay[:first], underWay[first+1:]...)
			c.end()
			settle()
			continue
		}
		s.now = next
		next = next.Add(time.Duration(float64(time.Second) / rate))
		switch c := s.call(rule.PriorityNormal); c.decision {
		case rule.Pass:
			begin(c)
		case rule.Wait:
			waiting = append(waiting, c)
		default:
			refused++
		}
	}
	for _, c := range underWay {
		s.now = max(s.now, ends[c])
		c.end()
	}
	for _, c := range waiting {
		for c.decision == rule.Wait {
			if after := c.poll(); c.decision == rule.Wait {
				s.now = s.now.Add(after)
			}
		}
		if c.decision == rule.Pass {
			c.end()
		}
	}
	return passed, refused
}
