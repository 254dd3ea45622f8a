package core_test

import (
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// toyConfig is the rule of kinds that only tests have.
type toyConfig struct {
	Name, Resource, Match string
	Shared                bool
	Origin                string
	Shadow                bool
	Attributes            string // separated by spaces
	Related               string
}

// toyKind returns a kind that is asked in a phase and refuses for a reason.
func toyKind(phase rule.Phase, reason rule.Reason) *rule.Type[toyConfig] {
	common := func(c *toyConfig) rule.Common {
		return rule.Common{
			Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow,
		}
	}
	return rule.Define(rule.Spec[toyConfig]{
		Kind: "toy", Phase: phase, Reason: reason, Common: common,
		Attributes: func(c *toyConfig) []string { return strings.Fields(c.Attributes) },
		New:        func(*toyConfig, rule.Env) rule.Limiter { return new(toy) },
	})
}

// toyRule returns a rule of a toy kind with its limiter.
func toyRule(name string, limiter rule.Limiter) core.Imposed {
	return imposed(rule.PhaseAccess, rule.Overloaded, toyConfig{Name: name}, limiter)
}

func imposed(phase rule.Phase, reason rule.Reason, c toyConfig, limiter rule.Limiter) core.Imposed {
	c.Resource = "r"
	return core.Imposed{Rule: toyKind(phase, reason).Of(c), Limiter: limiter}
}

// toy is a limiter that decides as it is told and remembers what it saw.
type toy struct {
	decide func(rule.Call) rule.Decision // Pass if nil
	retry  time.Duration

	mu      sync.Mutex
	calls   []rule.Call
	given   rule.Ticket
	out     map[rule.Ticket]bool // tickets that were neither given back nor done
	back    int
	exits   []rule.Exit
	settled int
	order   *[]string // to which the name is added by Done
	name    string
}

func (l *toy) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
	if l.decide != nil {
		if decision := l.decide(c); decision != rule.Pass {
			return 0, decision
		}
	}
	l.given++
	if l.out == nil {
		l.out = make(map[rule.Ticket]bool)
	}
	l.out[l.given] = true
	return l.given, rule.Pass
}

// become makes the limiter decide in another way.
func (l *toy) become(decide func(rule.Call) rule.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decide = decide
}

// held returns how many tickets are out.
func (l *toy) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.out)
}

func (l *toy) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(t)
	l.back++
}

// take takes a ticket, which must be out.
func (l *toy) take(t rule.Ticket) {
	if !l.out[t] {
		panic("a ticket came back that is not out")
	}
	delete(l.out, t)
}

func (l *toy) RetryAfter(c rule.Call) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decide != nil && l.decide(c) == rule.Pass {
		return 0
	}
	return l.retry
}

func (l *toy) Status(clock.Instant) rule.Status { return rule.Status{Quota: &rule.Quota{}} }
func (l *toy) Idle(clock.Instant) bool          { return true }

// finisher is a toy that learns of ends, and counts tokens.
type finisher struct{ toy }

func (l *finisher) Done(t rule.Ticket, e rule.Exit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(t)
	l.exits = append(l.exits, e)
	if l.order != nil {
		*l.order = append(*l.order, l.name)
	}
}

func (l *finisher) Settle(_, _ clock.Instant, _ rule.Ticket, tokens int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled += int(tokens)
}

// places is a queue: so many calls at once, the others wait for maxWait, first come,
// first served.
type places struct {
	mu      sync.Mutex
	limit   int
	maxWait time.Duration
	taken   int
	most    int
	waiting []*placeWaiter
	gone    bool
	joined  int
}

type placeWaiter struct {
	of      *places
	granted bool
	stale   bool
	until   clock.Instant
	wake    func()
}

func (p *places) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return 0, rule.Stale
	case p.taken < p.limit && len(p.waiting) == 0:
		p.take()
		return 1, rule.Pass
	case p.maxWait > 0:
		return 0, rule.Wait
	}
	return 0, rule.Block
}

func (p *places) take() {
	p.taken++
	p.most = max(p.most, p.taken)
}

func (p *places) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.serve()
}

func (p *places) serve() {
	for len(p.waiting) > 0 && p.taken < p.limit {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		w.granted = true
		p.take()
		w.wake()
	}
}

func (p *places) GiveBack(clock.Instant, rule.Ticket, int32) { p.free() }
func (p *places) Done(rule.Ticket, rule.Exit)                { p.free() }
func (p *places) Status(clock.Instant) rule.Status           { return rule.Status{Quota: &rule.Quota{}} }
func (p *places) Idle(clock.Instant) bool                    { return false }

func (p *places) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joined++
	if patience.Until < c.Now {
		return nil, 0, rule.Block
	}
	w := &placeWaiter{of: p, wake: patience.Wake, until: min(patience.Until, patience.Since.Add(p.maxWait))}
	p.waiting = append(p.waiting, w)
	p.serve()
	return w, 0, rule.Wait
}

func (p *places) RetryAfter(rule.Call) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken < p.limit {
		return 0
	}
	return 7 * time.Second
}

// retire lets go of who waits.
func (p *places) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, w := range p.waiting {
		w.stale = true
		w.wake()
	}
	p.waiting = nil
}

func (w *placeWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	switch {
	case w.granted:
		return 1, 0, rule.Pass
	case w.stale:
		return 0, 0, rule.Stale
	case now >= w.until:
		w.remove()
		return 0, 0, rule.Block
	}
	return 0, w.until.Sub(now), rule.Wait
}

func (w *placeWaiter) Leave(clock.Instant) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.granted {
		w.of.taken--
		w.of.serve()
		return
	}
	w.remove()
}

func (w *placeWaiter) remove() {
	for i, other := range w.of.waiting {
		if other == w {
			w.of.waiting = append(w.of.waiting[:i:i], w.of.waiting[i+1:]...)
			return
		}
	}
}
