package kindtest

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// changes is what the limiters of a test report of their states.
type changes struct {
	f        *fixture
	patience time.Duration

	mu      sync.Mutex
	of      rule.Limiter // nil while reports are not judged
	state   string       // that was reported last
	count   int
	looking bool // whether the limiter is locked
}

// follow has the reports of a limiter judged, from the state on that it is in.
func (c *changes) follow(l rule.Limiter) {
	state := l.Status(c.f.now).State
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.state, c.count = l, state, 0
}

// add is a [rule.Env.Changed].
func (c *changes) add(at clock.Instant, from, to, _ string) {
	c.mu.Lock()
	l := c.of
	if l == nil {
		c.mu.Unlock()
		return
	}
	if from != c.state || to == from || !slices.Contains(c.f.options.Kind.States(), to) {
		c.f.Errorf("a change from %q to %q is reported, and the state was %q: each change is reported once, in its order", from, to, c.state)
	}
	c.state = to
	c.count++
	first := !c.looking
	c.looking = true
	c.mu.Unlock()
	if first {
		c.mustNotBeLocked(l, at)
	}
}

// mustNotBeLocked looks at a limiter from another goroutine while it reports.
func (c *changes) mustNotBeLocked(l rule.Limiter, at clock.Instant) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.Status(at), l.Idle(at)
	}()
	select {
	case <-done:
	case <-time.After(c.patience):
		c.f.Errorf("a change is reported while the limiter is locked: whoever hears of it may look at the limiter")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looking = false
}

// expectState looks at the state of a limiter, which has to be the one that was reported last.
func (c *changes) expectState(l rule.Limiter, when string) {
	c.f.Helper()
	state := l.Status(c.f.now).State
	c.mu.Lock()
	defer c.mu.Unlock()
	if state != c.state {
		c.f.Errorf("the state is %q %s, and the last that was reported is %q: Env.Changed is to be called for each change", state, when, c.state)
		c.state = state
	}
}

// stateChangesAreReported changes the state of a limiter by calls, by failures, by force, by a newer version of the
// rule, and by the time.
func stateChangesAreReported(f *fixture) {
	if len(f.options.Kind.States()) == 0 {
		f.Skip("the kind has no states")
	}
	l, c := f.limiter(), f.changes
	c.follow(l)
	failed := f.exhaust(l, 1, max(1, f.of.Passes)+100)
	if finisher, ok := l.(rule.Finisher); ok {
		for _, t := range failed {
			finisher.Done(t, rule.Exit{Now: f.now, Start: f.now, Failed: true})
		}
	}
	c.expectState(l, "after calls that failed")
	if controllable, ok := l.(rule.Controllable); ok {
		for _, state := range append(f.options.Kind.Controls(), "") {
			controllable.Control(f.now, state)
			c.expectState(l, "once it was forced to "+state)
			f.decision(l)
			c.expectState(l, "at a call while forced to "+state)
		}
	}
	if next := f.of.Stricter.Clone().Adopt(l, f.env()); next != nil {
		if a, ok := next.(rule.Activator); ok {
			a.Activate(f.now)
		}
		f.decision(next)
		c.expectState(next, "of a newer version")
		l = next
	}
	for hour := range 48 {
		f.now = f.now.Add(time.Hour)
		if hour < 24 {
			f.decision(l)
		}
		c.expectState(l, "as time passes")
	}
	if c.count == 0 {
		f.Skip("the state does not change in the test")
	}
}
