package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// caller is one goroutine that makes calls.
type caller struct {
	clock   clock.Clock
	random  *rand.Rand
	targets []*target
	exits   chan<- *core.Guard
	started clock.Instant
}

// run makes calls until ctx ends. It makes many calls of one target in a row, so that
// limits are reached.
func (c *caller) run(ctx context.Context) {
	kinds := callKinds()
	for ctx.Err() == nil {
		t := c.targets[c.random.IntN(len(c.targets))]
		if t.pauses && !isActive(c.clock.Now().Sub(c.started)) {
			continue
		}
		row := 1 + c.random.IntN(100)
		if t.waits {
			row = min(row, 5)
		}
		for range row {
			kind := kinds[c.random.IntN(len(kinds))]
			if t.shadowed {
				kind = (*caller).exitGuard
			}
			kind(c, t, c.newCall(t))
		}
		if c.random.IntN(8) == 0 {
			time.Sleep(time.Duration(c.random.IntN(300)) * time.Microsecond)
		}
	}
}

// pausePeriod is how long a target that pauses is called, and then not called, in turn.
const pausePeriod = 20 * time.Second

func isActive(elapsed time.Duration) bool { return elapsed/pausePeriod%2 == 0 }

func (c *caller) newCall(t *target) *call {
	k := &call{ctx: context.Background(), name: t.name, tokens: 1}
	if t.many() {
		k.name = t.names(c.random)
	}
	if t.tokens > 1 {
		k.tokens += c.random.IntN(t.tokens)
		k.options = append(k.options, core.Tokens(k.tokens))
	}
	origin := []string{"", "mobile", "web"}[c.random.IntN(3)]
	if k.group = groupOf(origin); origin != "" {
		k.options = append(k.options, core.Origin(origin))
	}
	k.before = c.clock.Now()
	return k
}
