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

// run makes calls until ctx ends: of one target many in a row, so that ceilings
// are reached.
func (c *caller) run(ctx context.Context) {
	manners := manners()
	for ctx.Err() == nil {
		t := c.targets[c.random.IntN(len(c.targets))]
		if t.sleeps && !awake(c.clock.Now().Sub(c.started)) {
			continue
		}
		row := 1 + c.random.IntN(100)
		if t.waits {
			row = min(row, 5)
		}
		for range row {
			manner := manners[c.random.IntN(len(manners))]
			if t.shadowed {
				manner = (*caller).guards
			}
			manner(c, t, c.newCall(t))
		}
		if c.random.IntN(8) == 0 {
			time.Sleep(time.Duration(c.random.IntN(300)) * time.Microsecond)
		}
	}
}

// nap is how long those that sleep at times do so, and how long they are awake.
const nap = 20 * time.Second

func awake(elapsed time.Duration) bool { return elapsed/nap%2 == 0 }

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
