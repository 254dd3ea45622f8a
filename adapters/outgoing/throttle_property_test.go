package outgoing_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// model is the throttle as its documentation says, plainly written.
type model struct {
	bucket   time.Duration
	minCalls int
	open     int64 // number of the bucket in which the last call began
	first    int64 // first bucket in use
	events   []event
}

type event struct {
	bucket int64
	what   string // "accepted", "rejected" or "refused"
}

func (m *model) count(first int64, what ...string) (n int) {
	for _, e := range m.events {
		for _, w := range what {
			if e.bucket >= first && e.what == w {
				n++
			}
		}
	}
	return n
}

// begin opens the bucket of now, and finds the shortest window with minCalls ends.
func (m *model) begin(now time.Duration) {
	bucket := int64(now / m.bucket)
	if bucket == m.open {
		return
	}
	m.open = bucket
	m.first = bucket - 1
	for m.first > bucket-119 && m.count(m.first, "accepted", "rejected") < m.minCalls {
		m.first--
	}
}

func (m *model) refusal(k float64) float64 {
	ends := m.count(m.first, "accepted", "rejected")
	if ends < m.minCalls {
		return 0
	}
	requests := float64(ends + m.count(m.first, "refused"))
	accepts := float64(m.count(m.first, "accepted"))
	return min(max(0, (requests-k*accepts)/(requests+1)), 0.99)
}

func TestThrottleRefusesTheShareThatTheFormulaSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.Float64Range(1.1, 5).Draw(rt, "k")
		window := time.Duration(rapid.IntRange(2, 200).Draw(rt, "window")) * 600 * time.Millisecond
		minCalls := rapid.IntRange(1, 30).Draw(rt, "min calls")
		c := newClient(t, outgoing.ThrottleOptions{K: k, Window: window, MinCalls: minCalls, Seed: 1 + rapid.Uint64().Draw(rt, "seed")/2})
		m := &model{bucket: window / 120, minCalls: minCalls}
		start := int64(c.clock.Now())
		m.open = start / int64(m.bucket)
		m.first = m.open - 119
		last := outgoing.TargetStats{}
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			c.clock.Advance(time.Duration(rapid.Int64Range(0, int64(4*m.bucket)).Draw(rt, "wait")))
			if rapid.IntRange(0, 40).Draw(rt, "pause") == 0 {
				c.clock.Advance(time.Duration(rapid.Int64Range(0, int64(2*window)).Draw(rt, "long wait")))
			}
			answer := rejected()
			if rapid.Bool().Draw(rt, "accepted") {
				answer = accepted()
			}
			err := c.call(answer)
			m.begin(time.Duration(c.clock.Now()))
			switch {
			case err != nil:
				require.ErrorIs(rt, err, outgoing.ErrThrottled)
				require.Positive(rt, last.Refusal+m.refusal(k), "refused although the share is 0")
				m.events = append(m.events, event{m.open, "refused"})
			case answer == accepted():
				m.events = append(m.events, event{m.open, "accepted"})
			default:
				m.events = append(m.events, event{m.open, "rejected"})
			}
			last = c.stats()
			require.InDelta(rt, m.refusal(k), last.Refusal, 1e-9)
		}
	})
}

func TestCallsAreRefusedWithTheProbabilityOfTheFormula(t *testing.T) {
	t.Parallel()
	// Of 10 calls 3 are accepted: of the next calls (10 − 2·3) / 11 are to be refused. The
	// first of those is the probe of the second, so the second call is refused with the
	// square of that.
	const clients, share = 5000, 4.0 / 11
	refused := 0
	for seed := range uint64(clients) {
		c := newClient(t, outgoing.ThrottleOptions{Seed: seed + 1})
		for i := range 10 {
			answer := rejected()
			if i < 3 {
				answer = accepted()
			}
			require.NoError(t, c.call(answer))
		}
		require.NoError(t, c.call(outgoing.Answer{}))
		if c.call(outgoing.Answer{}) != nil {
			refused++
		}
	}
	deviation := math.Sqrt(clients * share * share * (1 - share*share))
	require.InDelta(t, clients*share*share, refused, 5*deviation)
}
