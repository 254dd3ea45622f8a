package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// passage is a call that passed.
type passage struct {
	at       clock.Instant
	compiled *flow.Compiled
	n        int64
}

// book is a gate that remembers every call that passed.
type book struct {
	*gate
	passages []passage
}

// held returns what passed in the buckets of the window that is at an end now,
// by the times at which it really passed.
func (b *book) held() (tokens int64) {
	span := int64(b.rule.Buckets)
	if b.rule.Strict {
		span++
	}
	for _, p := range b.passages {
		if b.bucket(p.at) > b.bucket(b.now)-span {
			tokens += p.n
		}
	}
	return tokens
}

func (b *book) take(n int32) rule.Decision {
	decision := b.gate.take(n)
	if decision == rule.Pass {
		b.passages = append(b.passages, passage{b.now, b.compiled, int64(n)})
	}
	return decision
}

// giveBack gives back some of what a call took.
func (b *book) giveBack(t *rapid.T) {
	back := rapid.IntRange(1, 8).Draw(t, "calls ago")
	if back > len(b.passages) || b.passages[len(b.passages)-back].n == 0 {
		t.Skip("there is nothing to give back")
	}
	p := &b.passages[len(b.passages)-back]
	n := rapid.Int64Range(1, p.n).Draw(t, "n")
	b.window.GiveBack(p.compiled, p.at, int32(n))
	p.n -= n
}

// letTimePass moves on by up to some buckets, or by about a window, to the
// edge of a bucket or not.
func (b *book) letTimePass(t *rapid.T) {
	length := b.bucketLength()
	buckets := rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3, b.rule.Buckets - 1, b.rule.Buckets, b.rule.Buckets + 1}).Draw(t, "buckets")
	part := rapid.SampledFrom([]time.Duration{0, 0, 1, length / 3, length - 1}).Draw(t, "part")
	b.wait(time.Duration(buckets)*length + part)
}

func TestWindowBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.IntRange(0, 12)
		b := &book{gate: newGate(t, flow.Rule{
			Resource: "r", Limit: float64(limits.Draw(t, "limit")),
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets"),
			Strict:  rapid.Bool().Draw(t, "strict"),
		})}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int32Range(1, 4).Draw(t, "n")
				want := rule.Block
				if b.held()+int64(n) <= int64(b.rule.Limit) {
					want = rule.Pass
				}
				assert.Equal(t, want, b.take(n))
			},
			"take before the present bucket": func(t *rapid.T) {
				b.take(1)
				early := b.bucketStart().Add(-time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "early")))
				assert.Equal(t, rule.Stale, b.window.Take(b.compiled, early, 1))
			},
			"give back":   b.giveBack,
			"time passes": b.letTimePass,
			"another limit": func(t *rapid.T) {
				old := b.compiled
				b.change(func(r *flow.Rule) { r.Limit = float64(limits.Draw(t, "limit")) })
				if rapid.Bool().Draw(t, "adopt") {
					b.window.Adopt(b.compiled, b.now)
					assert.Equal(t, rule.Stale, b.window.Take(old, b.now, 1))
				}
			},
			"ask": func(t *rapid.T) {
				b.window.Adopt(b.compiled, b.now)
				limit, remaining, reset := b.window.Status(b.now)
				assert.InDelta(t, b.rule.Limit, limit, 1e-9)
				assert.Equal(t, max(0, int64(b.rule.Limit)-b.held()), remaining)
				assert.GreaterOrEqual(t, reset, time.Duration(0))
			},
		})
	})
}

// Over any change of its geometry, a window counts what it held no shorter
// than it was going to, and once that has left it is exact again.
func TestWindowNeverExceedsItsLimitOverChangedBuckets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &book{gate: newGate(t, reject(8))}
		b.wait(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "phase")))
		forget := func() { // what the old window would not hold any more
			span := int64(b.rule.Buckets)
			for i, p := range b.passages {
				if b.bucket(p.at) <= b.bucket(b.now)-span {
					b.passages[i].n = 0
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int32Range(1, 4).Draw(t, "n")
				if b.take(n) == rule.Pass {
					assert.LessOrEqual(t, b.held(), int64(8))
				}
			},
			"fill": func(t *rapid.T) {
				for b.take(1) == rule.Pass {
					assert.LessOrEqual(t, b.held(), int64(8))
				}
			},
			"give back":   b.giveBack,
			"time passes": b.letTimePass,
			"another geometry": func(t *rapid.T) {
				forget()
				b.change(func(r *flow.Rule) {
					r.Window = rapid.SampledFrom([]time.Duration{
						100 * time.Millisecond, 700 * time.Millisecond, time.Second, 10 * time.Second,
					}).Draw(t, "window")
					r.Buckets = rapid.SampledFrom([]int{1, 2, 5, 10, 20}).Draw(t, "buckets")
				})
				b.window.Adopt(b.compiled, b.now)
			},
			"a window passes": func(t *rapid.T) {
				b.wait(10*time.Second + 2*b.rule.Window)
				assert.Equal(t, 8, b.pass(20))
				b.wait(b.rule.Window)
			},
		})
	})
}

// A refused call that waits as long as it is told passes, if nobody comes in
// between; one that does not wait so long passes no sooner.
func TestWindowRetryAfterIsHonest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 12), func(n int) float64 { return float64(n) }),
			rapid.Float64Range(0.05, 12),
		).Draw(t, "limit")
		b := &book{gate: newGate(t, flow.Rule{
			Resource: "r", Limit: limit,
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets"),
			Strict:  rapid.Bool().Draw(t, "strict"),
		})}
		n := rapid.Int32Range(1, 6)
		t.Repeat(map[string]func(*rapid.T){
			"take":        func(t *rapid.T) { b.take(n.Draw(t, "n")) },
			"time passes": b.letTimePass,
			"retry": func(t *rapid.T) {
				n := n.Draw(t, "n")
				if b.take(n) == rule.Pass {
					t.Skip("it was not refused")
				}
				wait := b.window.RetryAfter(b.now, n)
				if float64(n) > math.Ceil(limit) {
					assert.Equal(t, rule.Never, wait)
					return
				}
				assert.Positive(t, wait)
				b.now = b.now.Add(wait)
				assert.Equal(t, rule.Pass, b.take(n), "after %v", wait)
			},
			"retry too early": func(t *rapid.T) {
				if b.take(1) == rule.Pass || limit < 1 || limit != math.Floor(limit) {
					t.Skip("it was not refused, or waits for a fraction")
				}
				step := min(b.bucketLength(), 100*time.Millisecond) // in which it is told
				b.now = b.now.Add(max(0, b.window.RetryAfter(b.now, 1)-step-1))
				assert.Equal(t, rule.Block, b.take(1))
			},
		})
	})
}

// A fractional limit lets no window hold more than the next whole number, and
// refuses nothing that its whole tokens have a slot for.
func TestFractionalWindowStaysBetweenWholeNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &book{gate: newGate(t, flow.Rule{
			Resource: "r", Limit: rapid.Float64Range(0.01, 12).Draw(t, "limit"),
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets"),
			Strict:  rapid.Bool().Draw(t, "strict"),
		})}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int32Range(1, 3).Draw(t, "n")
				remaining := int64(math.Floor(b.rule.Limit)) - b.held()
				if b.take(n) == rule.Block {
					assert.Greater(t, int64(n), remaining, "tokens remained")
				}
				assert.LessOrEqual(t, b.held(), int64(math.Ceil(b.rule.Limit)))
			},
			"give back":   b.giveBack,
			"time passes": b.letTimePass,
		})
	})
}
