package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// target is a resource that is called, or many that are alike, and what became of
// the calls.
type target struct {
	engine   *subject
	name     string // begins with it, if there are many
	names    func(random *rand.Rand) string
	tokens   int  // the most that a call takes
	waits    bool // its calls may wait: few are made in a row
	sleeps   bool // at times nobody calls it
	shadowed bool // who calls it must see what the guard says
	promises []*promise
	relation *promise // of the resource that must not be busy when this one is called

	calls, passed, failed    atomic.Uint64
	blocked, gaveUp, invalid atomic.Uint64
	wouldBlock               atomic.Uint64
	refusals                 map[string]*atomic.Uint64 // by the rules that are always in force

	mu      sync.Mutex
	seconds map[int64]*second
}

// second is how many calls passed in a second: for certain, and at the most.
type second struct{ surely, perhaps uint64 }

// many says whether the target is many resources.
func (t *target) many() bool { return t.names != nil }

// decided notes what became of a call that began and ended at the given instants.
func (t *target) decided(c *call, after clock.Instant, err error) {
	t.calls.Add(1)
	var block *core.BlockError
	switch {
	case err == nil:
		t.pass(c, after)
	case errors.As(err, &block):
		t.block(c, block)
	case errors.Is(err, core.ErrInvalid) && c.mistaken:
		t.invalid.Add(1)
	case c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()):
		t.gaveUp.Add(1)
	default:
		t.engine.wrong.add("%s: an error that nobody could expect: %v", c.name, err)
	}
}

func (t *target) pass(c *call, after clock.Instant) {
	t.passed.Add(1)
	if c.wouldBlock == "shadow" {
		t.wouldBlock.Add(1)
	}
	for _, p := range t.promises {
		if (p.origin == "" || p.origin == c.group) && p.key != c.wouldBlock {
			p.add(c.before, after, c.tokens)
		}
	}
	if t.relation != nil {
		t.disturbed(c, after)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first, last := int64(c.before)/int64(time.Second), int64(after)/int64(time.Second)
	for s := first; s <= last; s++ {
		if t.seconds[s] == nil {
			delete(t.seconds, s-120)
			t.seconds[s] = new(second)
		}
		t.seconds[s].perhaps++
	}
	if first == last {
		t.seconds[first].surely++
	}
}

func (t *target) block(c *call, block *core.BlockError) {
	t.blocked.Add(1)
	if refusals := t.refusals[block.Rule]; refusals != nil {
		refusals.Add(1)
	}
	if block.Resource != c.name || block.RetryAfter < 0 || !errors.Is(block, core.ErrBlocked) {
		t.engine.wrong.add("%s: refused as %+v", c.name, block)
	}
}

// disturbed tells of a call that passed though the related resource was surely busy
// all the time.
func (t *target) disturbed(c *call, after clock.Instant) {
	const bucket = clock.Instant(100 * time.Millisecond)
	opens := (after/bucket - 9) * bucket
	if writes := t.relation.surely(opens, c.before); writes >= busy {
		t.engine.wrong.add("%s passes beside %d writes, fewer than %d are allowed", c.name, writes, busy)
	}
}

// numbered returns names that begin alike.
func numbered(prefix string, count int) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return fmt.Sprint(prefix, random.IntN(count)) }
}

// passing returns names that come and, a while later, do not come again.
func passing(prefix string, start clock.Instant, c clock.Clock) func(*rand.Rand) string {
	return func(random *rand.Rand) string {
		return fmt.Sprint(prefix, int64(c.Now().Sub(start)/(200*time.Millisecond))+int64(random.IntN(100)))
	}
}
