package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// ticking is a clock that moves on by a fixed step each time it is read, so
// that many goroutines share one time that passes as they work.
type ticking struct {
	clock.Clock
	now  atomic.Int64
	step time.Duration
}

func newTicking(step time.Duration) *ticking {
	c := &ticking{Clock: clock.System(), step: step}
	c.now.Store(begin.Add(370 * time.Millisecond).UnixNano()) // within a second
	return c
}

func (c *ticking) Now() clock.Instant { return clock.Instant(c.now.Add(int64(c.step))) }

// passes records when calls passed.
type passes struct {
	mu sync.Mutex
	at []clock.Instant
}

func (p *passes) enter(e *core.Engine, resource string) {
	guard, err := e.Entry(context.Background(), resource)
	if err != nil {
		return
	}
	defer guard.Exit()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, guard.Start())
}

// worst returns the most passes in any window, of those that begin on a
// multiple of the alignment.
func (p *passes) worst(window, alignment time.Duration) (worst int) {
	buckets := map[int64]int{}
	for _, at := range p.at {
		buckets[int64(at)/int64(alignment)]++
	}
	for b := range buckets {
		sum := 0
		for i := range int64(window / alignment) {
			sum += buckets[b-i]
		}
		worst = max(worst, sum)
	}
	return worst
}

func TestSixtyFourGoroutinesNeverExceedTheLimit(t *testing.T) {
	const limit, seconds = 1000, 5
	for _, rules := range [][]flow.Rule{
		{{Resource: "r", Limit: limit}},
		{{Resource: "r", Limit: limit, Strict: true}},
		{{Resource: "r", Limit: limit}, {Name: "other", Resource: "r", Limit: limit + 1}},
		{{Resource: "r", Limit: limit}, {Name: "throttle", Resource: "r", Limit: 5000, Algorithm: flow.Throttle}},
	} {
		t.Run(fmt.Sprintf("%d rules, strict %v", len(rules), rules[0].Strict), func(t *testing.T) {
			recorder := &passes{}
			ticks := newTicking(20 * time.Microsecond)
			e := core.New(core.Config{Clock: ticks, Logger: quiet})
			defer e.Close()
			load(t, e, rules...)
			end := ticks.Now().Add(seconds * time.Second)
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for ticks.Now() < end {
						recorder.enter(e, "r")
					}
				})
			}
			wg.Wait()

			assert.LessOrEqual(t, recorder.worst(time.Second, 100*time.Millisecond), limit, "windows of buckets")
			assert.LessOrEqual(t, recorder.worst(time.Second, time.Second), limit, "calendar seconds")
			allowed := float64(limit * seconds)
			if rules[0].Strict {
				assert.LessOrEqual(t, recorder.worst(time.Second, time.Millisecond), limit, "any second")
				allowed *= 10.0 / 11
			}
			assert.GreaterOrEqual(t, float64(len(recorder.at)), 0.995*allowed)
			for _, second := range e.Resource("r").Minute() {
				assert.LessOrEqual(t, second.Passed, uint64(limit), "as the statistics have it")
			}
		})
	}
}

func TestStatisticsOfASecondAgreeWithItsLimit(t *testing.T) {
	ticks := newTicking(time.Microsecond)
	e := core.New(core.Config{Clock: ticks, Logger: quiet})
	defer e.Close()
	load(t, e, flow.Rule{Resource: "r", Limit: 1000, Buckets: 1})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() { enter(e, "r", 20_000) })
	}
	wg.Wait()
	for _, second := range e.Resource("r").Minute() {
		require.LessOrEqual(t, second.Passed, uint64(1000))
	}
}
