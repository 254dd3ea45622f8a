package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// change returns another version of a rule: another limit, another size of the table, and
// if values are named, a limit for mallory by name, by a pattern, or not.
func change(r hotparam.Rule, names bool, random *rand.Rand) hotparam.Rule {
	limit := float64(1 + random.IntN(20))
	if r.Concurrency > 0 {
		r.Concurrency = int(limit)
	} else {
		r.Limit = limit
	}
	r.MaxValues = 100 * (1 + random.IntN(3))
	entry := rule.NumberEntry{Value: limit, Key: rule.String([]string{"mallory", "mal*", "alice"}[random.IntN(3)])}
	if names && random.IntN(4) > 0 {
		r.Values = rule.NumberMapOf(entry)
	}
	return r
}

// limitOf is the limit of mallory, whichever way the rule says it.
func limitOf(r hotparam.Rule) float64 { return max(r.Limit, float64(r.Concurrency)) }

// A thousand reloads change the limit up and down while mallory calls all the time, among
// many others. In all, mallory gets no more than the limits allow that were in force.
func TestThousandReloadsGiveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, first := range map[string]hotparam.Rule{
		"token bucket":           {Window: time.Second},
		"token bucket, burst":    {Window: time.Second, Burst: 7},
		"sliding window":         {Window: time.Second, Algorithm: hotparam.SlidingWindow},
		"throttle":               {Window: time.Second, Algorithm: hotparam.Throttle},
		"concurrency":            {Concurrency: 1},
		"token bucket, penalty":  {Window: time.Second, Penalty: hotparam.Penalty{After: 50, Within: time.Second, For: time.Second}},
		"sliding window, long":   {Window: 10 * time.Second, Algorithm: hotparam.SlidingWindow},
		"token bucket, fraction": {Window: 3 * time.Second},
	} {
		for _, pause := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
			names := pause > time.Millisecond
			t.Run(fmt.Sprint(name, ", calls each ", pause), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(1, uint64(pause)))
				r := change(first, names, random)
				s := newService(t, 3, r)
				bound := newBound(t, r, s.clock.Now())
				var open []*core.Guard
				for i := range 20_000 {
					if i%20 == 0 {
						r = change(first, names, random)
						s.load(r)
						bound.reload(r, s.clock.Now())
					}
					s.call(core.String("user", fmt.Sprint("other-", random.IntN(400))))
					if guard, passes := s.enter(core.String("user", "mallory")); passes {
						if first.Concurrency == 0 {
							guard.Exit()
						} else {
							open = append(open, guard)
						}
						bound.pass(s.clock.Now(), len(open))
					}
					for len(open) > 0 && random.IntN(20) == 0 {
						open[0].Exit()
						open = open[1:]
					}
					s.clock.Advance(pause)
				}
				if !names && first.Penalty.After == 0 && first.Concurrency == 0 {
					assert.GreaterOrEqual(t, float64(bound.passed), 0.9*bound.flowed, "reloads take nothing")
				}
				assert.Positive(t, bound.passed)
				for _, guard := range open {
					guard.Exit()
				}
			})
		}
	}
}

// bound checks what one value may get while its limit changes.
type bound struct {
	tb      testing.TB
	rule    hotparam.Rule
	missing float64 // token bucket: the tokens that are missing
	at      clock.Instant
	last    clock.Instant // throttle: pass
	passes  []clock.Instant
	passed  int
	flowed  float64 // tokens that the limits gave
}

func newBound(tb testing.TB, r hotparam.Rule, now clock.Instant) *bound {
	tb.Helper()
	return &bound{tb: tb, rule: hotparam.Kind().WithDefaults(r), at: now}
}

// reload goes over to another version of the rule: what is missing stays missing.
func (b *bound) reload(r hotparam.Rule, now clock.Instant) {
	b.flow(now)
	b.rule = hotparam.Kind().WithDefaults(r)
}

func (b *bound) flow(now clock.Instant) {
	if b.rule.Window > 0 {
		flowed := limitOf(b.rule) * now.Sub(b.at).Seconds() / b.rule.Window.Seconds()
		b.missing, b.flowed = max(0, b.missing-flowed), b.flowed+flowed
	}
	b.at = now
}

// pass notes a call that passed, which the limit must have allowed.
func (b *bound) pass(now clock.Instant, underWay int) {
	b.passed++
	limit := limitOf(b.rule)
	spacing := time.Duration(float64(b.rule.Window) / max(1, limit))
	switch b.rule.Algorithm {
	case hotparam.TokenBucket:
		b.flow(now)
		b.missing++
		require.LessOrEqual(b.tb, b.missing, cmp.Or(b.rule.Burst, max(1, limit))+1e-6, "pass %d", b.passed)
	case hotparam.SlidingWindow:
		bucket := clock.Instant(b.rule.Window / valueBuckets)
		b.passes = append(after(b.passes, (now/bucket-valueBuckets+1)*bucket-1), now)
		require.LessOrEqual(b.tb, float64(len(b.passes)), limit, "pass %d", b.passed)
	case hotparam.Throttle:
		if b.passed > 1 {
			require.GreaterOrEqual(b.tb, now.Sub(b.last), spacing-time.Nanosecond, "pass %d", b.passed)
		}
		b.last = now
	default:
		require.LessOrEqual(b.tb, float64(underWay), limit, "pass %d", b.passed)
	}
}
