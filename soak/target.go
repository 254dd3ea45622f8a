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

// target is a resource that is called, or many similar ones, with counts of the calls.
type target struct {
	engine   *subject
	name     string // prefix of the names, if there are many
	names    func(random *rand.Rand) string
	tokens   int  // highest number that a call takes
	waits    bool // calls may wait, so few are made in a row
	pauses   bool // is not called at times
	shadowed bool // callers must check Guard.WouldBlock
	promises []*promise
	related  *promise // of the related resource, which must not be busy when this one is called

	calls, passed, failed    atomic.Uint64
	blocked, gaveUp, invalid atomic.Uint64
	wouldBlock               atomic.Uint64
	refusals                 map[string]*atomic.Uint64 // by the rules that are always in force

	mu      sync.Mutex
	seconds map[int64]*second
}

// second is how many calls passed in a second: certainly, and at most.
type second struct{ certain, possible uint64 }

// many reports whether the target stands for many resources.
func (t *target) many() bool { return t.names != nil }

// recordResult records the result of a call that ended at the given instant.
func (t *target) recordResult(c *call, after clock.Instant, err error) {
	t.calls.Add(1)
	var block *core.BlockError
	switch {
	case err == nil:
		t.pass(c, after)
	case errors.As(err, &block):
		t.block(c, block)
	case errors.Is(err, core.ErrInvalid) && c.invalid:
		t.invalid.Add(1)
	case c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()):
		t.gaveUp.Add(1)
	default:
		t.engine.findings.add("%s: an error that nobody could expect: %v", c.name, err)
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
	if t.related != nil {
		t.checkRelated(c, after)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first, last := int64(c.before)/int64(time.Second), int64(after)/int64(time.Second)
	for s := first; s <= last; s++ {
		if t.seconds[s] == nil {
			delete(t.seconds, s-120)
			t.seconds[s] = new(second)
		}
		t.seconds[s].possible++
	}
	if first == last {
		t.seconds[first].certain++
	}
}

func (t *target) block(c *call, block *core.BlockError) {
	t.blocked.Add(1)
	if refusals := t.refusals[block.Rule]; refusals != nil {
		refusals.Add(1)
	}
	if block.Resource != c.name || block.RetryAfter < 0 || !errors.Is(block, core.ErrBlocked) {
		t.engine.findings.add("%s: refused as %+v", c.name, block)
	}
}

// checkRelated adds a finding if a call passed although the related resource was
// certainly busy all the time.
func (t *target) checkRelated(c *call, after clock.Instant) {
	const bucket = clock.Instant(100 * time.Millisecond)
	opens := (after/bucket - 9) * bucket
	if writes := t.related.certain(opens, c.before); writes >= busyWrites {
		t.engine.findings.add("%s passes beside %d writes, fewer than %d are allowed", c.name, writes, busyWrites)
	}
}

// numberedNames returns names that begin alike.
func numberedNames(prefix string, count int) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return fmt.Sprint(prefix, random.IntN(count)) }
}

// temporaryNames returns names that are used for a while and then no longer.
func temporaryNames(prefix string, start clock.Instant, c clock.Clock) func(*rand.Rand) string {
	return func(random *rand.Rand) string {
		return fmt.Sprint(prefix, int64(c.Now().Sub(start)/(200*time.Millisecond))+int64(random.IntN(100)))
	}
}
