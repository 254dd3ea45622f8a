package adaptive_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func TestEvidenceIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]limit.Shortage{
		"with a limit of 48 instead of 24 calls took 1.9 times as long": {By: limit.ByLimits, Limit: 48, Lower: 24, Slower: 1.94},
		"120 calls came in 85ms, where 30 are usual, and calls took 2.0 times as long as usual": {
			By: limit.BySurge, Calls: 120, Of: 30.2, Within: 85*time.Millisecond + 300*time.Microsecond, Slower: 2.04,
		},
		"goroutines wait 120ms for a processor, and 120 calls came in 85ms, where 30 are usual": {
			By: limit.ByProcessor, Delay: 0.1203, Calls: 120, Of: 30.2, Within: 85 * time.Millisecond,
		},
		"clients gave up: 9 of 12 calls failed after a long time":                                      {By: limit.ByFailures, Calls: 9, Of: 12},
		"as many calls ended as when it was limited before, and calls took 1.8 times as long as usual": {By: limit.ByEarlier, Slower: 1.8},
		"more calls under way only took longer":                                                        {},
	} {
		assert.Equal(t, want, adaptive.EvidenceOf(of))
	}
}

// Clients choose the names of resources: what is said of them stays short.
func TestFewResourcesAreNamed(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "the resource", adaptive.NamesOf(0))
	assert.Less(t, len(adaptive.NamesOf(1000)), 400)
	assert.True(t, strings.HasSuffix(adaptive.NamesOf(1000), " and 995 more"))
}

// A service with four workers gets five times as many calls as it can do: the rule says so, why,
// and since when, and that it is over.
func TestRuleSaysWhyCallsAreRefused(t *testing.T) {
	t.Parallel()
	const took = 10 * time.Millisecond
	s := newGateScene(t, adaptive.Rule{Resource: "r"})
	var reports []string
	env := s.env()
	env.Changed = func(_ clock.Instant, from, to, because string) {
		s.limiter.Status(s.now) // it may ask the limiter
		reports = append(reports, from+" to "+to+": "+because)
	}
	s.limiter = adaptive.Kind().Of(adaptive.Kind().WithDefaults(s.rule)).NewLimiter(env).(latencyLimiter)
	w := gateWorkers{scene: s, took: took, free: make([]clock.Instant, 4)}
	w.run(3*time.Second, 5*time.Millisecond)
	require.Equal(t, adaptive.Normal, s.limiter.Status(s.now).State)
	require.Empty(t, s.limiter.Status(s.now).Notes)

	begun := s.now
	w.run(3*time.Second, 500*time.Microsecond)
	status := s.limiter.Status(s.now)
	require.Equal(t, adaptive.Limited, status.State)
	require.Len(t, status.Notes, 1)
	assert.Regexp(t, `^limited to \d+ calls, as \d+ calls came in \d+ms, where \d+ are usual, and calls took \d\.\d times as long as usual; `+
		`refuses calls of the resource$`, status.Notes[0].Text)
	assert.WithinDuration(t, begun.Time(), status.Notes[0].Since.Time(), time.Second)

	w.run(10*time.Second, 5*time.Millisecond)
	status = s.limiter.Status(s.now)
	assert.Equal(t, adaptive.Normal, status.State)
	assert.Empty(t, status.Notes)
	require.Len(t, reports, 2)
	assert.Regexp(t, `^normal to limited: limited to \d+ calls, as \d+ calls came in`, reports[0])
	assert.Equal(t, "limited to normal: ", reports[1])
}

// gateWorkers serve the calls of a scene in the order in which they pass.
type gateWorkers struct {
	scene   *gateScene
	took    time.Duration
	free    []clock.Instant // when each is
	waiting []*gateCall
	ends    []workerEnd // in order
}

type workerEnd struct {
	at   clock.Instant
	call *gateCall
}

// run has calls come for a while, one each interval.
func (w *gateWorkers) run(d, interval time.Duration) {
	s := w.scene
	for until := s.now.Add(d); s.now < until; {
		next := s.now.Add(interval)
		for len(w.ends) > 0 && w.ends[0].at <= next {
			end := w.ends[0]
			w.ends = w.ends[1:]
			s.now = end.at
			end.call.end()
			w.poll()
		}
		s.now = next
		w.poll()
		w.add(s.call(rule.PriorityNormal))
	}
}

// poll has calls that wait go on.
func (w *gateWorkers) poll() {
	waiting := w.waiting
	w.waiting = nil
	for _, c := range waiting {
		c.poll()
		w.add(c)
	}
}

func (w *gateWorkers) add(c *gateCall) {
	switch c.decision {
	case rule.Wait:
		w.waiting = append(w.waiting, c)
	case rule.Pass:
		first := 0
		for i := range w.free {
			if w.free[i] < w.free[first] {
				first = i
			}
		}
		w.free[first] = max(w.free[first], w.scene.now).Add(w.took)
		w.ends = append(w.ends, workerEnd{w.free[first], c})
	}
}
