package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// traffic runs calls on a virtual clock, those that wait too.
type traffic struct {
	t       *testing.T
	engine  *core.Engine
	clock   *clock.Virtual
	waiting []*trafficCall
	passes  map[string][]clock.Instant // by resource
	refused map[string]int
}

type trafficCall struct {
	name    string
	arrival *core.Arrival
	woken   bool
	due     clock.Instant // 0: when it is woken
}

func newTraffic(t *testing.T, list ...flow.Rule) *traffic {
	e, c := newEngine(t, list...)
	return &traffic{t: t, engine: e, clock: c, passes: map[string][]clock.Instant{}, refused: map[string]int{}}
}

func (r *traffic) call(name string, opts ...core.Option) {
	c := &trafficCall{name: name}
	c.arrival = r.engine.Arrive(r.t.Context(), name, func() { c.woken = true }, opts...)
	r.waiting = append(r.waiting, c)
	r.proceed(c)
	r.settle()
}

func (r *traffic) proceed(c *trafficCall) {
	c.woken, c.due = false, 0
	after, done := c.arrival.Proceed()
	if !done {
		if after > 0 {
			c.due = r.clock.Now().Add(after)
		}
		return
	}
	if guard, err := c.arrival.Result(); err == nil {
		r.passes[c.name] = append(r.passes[c.name], r.clock.Now())
		guard.Exit()
	} else {
		r.refused[c.name]++
	}
	for i, w := range r.waiting {
		if w == c {
			r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
		}
	}
}

// settle goes on with the calls that can.
func (r *traffic) settle() {
	for again := true; again; {
		again = false
		for _, c := range r.waiting {
			if c.woken || c.due != 0 && c.due <= r.clock.Now() {
				r.proceed(c)
				again = true
				break
			}
		}
	}
}

// advance moves time from one turn to the next.
func (r *traffic) advance(d time.Duration) {
	end := r.clock.Now().Add(d)
	for r.clock.Now() < end {
		next := end
		for _, c := range r.waiting {
			if c.due != 0 {
				next = min(next, c.due)
			}
		}
		r.clock.Advance(next.Sub(r.clock.Now()))
		r.settle()
	}
}

// A caller whose own window is used up does not stand in the queue that it shares
// with others, where its calls could only be refused when their turns come.
func TestQuietCallersPassBesideOneWhoseOwnWindowIsFull(t *testing.T) {
	shared := throttle("", 100, 50*time.Millisecond)
	shared.Name, shared.Match, shared.Shared = "shared", "*", true
	tests := map[string][]flow.Rule{
		"windows for each name": {shared, {Name: "each", Match: "*", Limit: 10}},
		"a window for one name": {shared, {Name: "loud", Resource: "loud", Limit: 10}},
		"fixed windows":         {shared, {Name: "each", Match: "*", Limit: 10, Algorithm: flow.FixedWindow}},
		"a limit of 0":          {shared, {Name: "loud", Resource: "loud"}},
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			r := newTraffic(t, list...)
			const quiet = 8
			for i := range 20_000 * 5 {
				r.call("loud")
				if i%(20_000/quiet) == 1234 {
					r.call("quiet")
				}
				r.advance(50 * time.Microsecond)
			}
			r.advance(time.Second)
			fmt.Println(name, len(r.passes["quiet"]), r.refused["quiet"], len(r.passes["loud"]))
			assert.Zero(t, r.refused["quiet"])
		})
	}
}
