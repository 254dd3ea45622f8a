package core_test

import (
	"fmt"
	"math/rand/v2"
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
	order   []trafficPass
	refused map[string]int
}

type trafficPass struct {
	at   clock.Instant
	name string
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
		r.order = append(r.order, trafficPass{r.clock.Now(), c.name})
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

// advance moves time from one pass to the next.
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
// with others, where its calls could only be refused when they may pass.
func TestQuietOriginsPassWhileTheWindowOfAnotherIsFull(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	shared := throttle("", 100, 50*time.Millisecond)
	shared.Name, shared.Match, shared.Shared = "shared", "*", true
	tests := map[string][]flow.Rule{
		"windows for each name": {shared, {Name: "each", Match: "*", Limit: 10}},
		"a window for one name": {shared, {Name: "loud", Resource: "loud", Limit: 10}},
		"fixed windows":         {shared, {Name: "each", Match: "*", Limit: 10, Algorithm: flow.FixedWindow}},
		"a limit of 0":          {shared, {Name: "loud", Resource: "loud"}},
		"throttles for each":    {shared, {Name: "each", Match: "*", Limit: 10, Algorithm: flow.Throttle, MaxWait: 50 * time.Millisecond}},
		"buckets for each":      {shared, {Name: "each", Match: "*", Limit: 10, Burst: 1, Algorithm: flow.TokenBucket, MaxWait: 50 * time.Millisecond}},
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			const quiet, loud, seconds = 8, 20_000, 3
			var passed, refused int
			for phase := range 5 { // wherever in the second they come
				r := newTraffic(t, list...)
				for i := range loud * seconds {
					r.call("loud")
					if i%(loud/quiet) == phase*loud/quiet/5+123 {
						r.call("quiet")
					}
					r.advance(time.Second / loud)
				}
				r.advance(time.Second)
				passed += len(r.passes["quiet"])
				refused += r.refused["quiet"]
				assert.InDelta(t, list[1].Limit*seconds, len(r.passes["loud"]), 1, "and the loud one has its share")
			}
			assert.Equal(t, 5*quiet*seconds, passed+refused)
			// In 50 ms of each second the queue is full of calls that pass.
			assert.LessOrEqual(t, float64(refused), 0.06*float64(passed+refused))
		})
	}
}

// Ten quiet callers that come at random use most of what the queue lets pass. Beside
// them, one whose own window lets a twentieth of a percent of its calls through costs
// them no more than what it passes itself.
func TestManyQuietOriginsLoseLittleToALoudOne(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	shared := throttle("", 100, 50*time.Millisecond)
	shared.Name, shared.Match, shared.Shared = "shared", "*", true
	pass := func(loud bool) (passed int) {
		r := newTraffic(t, shared, flow.Rule{Name: "each", Match: "*", Limit: 10})
		random := rand.New(rand.NewPCG(1, 2))
		const perSecond, quiet, seconds = 20_000, 8, 5
		for range perSecond * seconds {
			if loud {
				r.call("loud")
			}
			for name := range 10 {
				if random.IntN(perSecond/quiet) == 0 {
					r.call(fmt.Sprint("quiet", name))
				}
			}
			r.advance(time.Second / perSecond)
		}
		r.advance(time.Second)
		for name, passes := range r.passes {
			if name != "loud" {
				passed += len(passes)
			}
		}
		return passed
	}
	alone, beside := pass(false), pass(true)
	assert.Greater(t, alone, 350)
	assert.GreaterOrEqual(t, float64(beside), 0.93*float64(alone), "%d pass alone", alone)
}
