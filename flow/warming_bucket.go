package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/warmup"
)

// warmingBucket is the schedule of a token bucket that warms up, as Guava's
// SmoothWarmingUp. The tokens of a call cost time, the more the colder the resource is,
// and the next call waits until that time has passed. A call itself passes whatever it
// takes.
type warmingBucket struct {
	compiled *compiledRule
	costs    warmup.CostCurve
	at       clock.Instant // when it stood so:
	stored   float64       // tokens: the more, the colder
	owed     float64       // nanoseconds until the next call may pass
	idle     clock.Instant // when a call last came later than it had to
	unpaid   clock.Instant // when a call passed for which nothing is owed as long as the limit is 0; else 0
	rate     float64       // tokens per nanosecond of a warm resource
	given    accrual       // for the bucket that the rule may become again
}

// newWarmingBucket returns a bucket that stores a share of its tokens: 1 is cold.
func newWarmingBucket(r *compiledRule, now clock.Instant, share float64) *warmingBucket {
	stored := r.costs.Maximum() * share
	return &warmingBucket{
		compiled: r, costs: r.costs, at: now, stored: stored, idle: beforeAll,
		rate: r.perNanosecond(), given: accrual{stored, r.costs.Maximum()},
	}
}

// balance returns what is stored and owed at an instant. When nothing is owed, time
// restores tokens. If a call has brought a later instant, it is the balance at that.
func (z *warmingBucket) balance(now clock.Instant) (stored, owed float64) {
	owed = z.owed - float64(max(0, now.Sub(z.at)))
	if owed >= 0 {
		return z.stored, owed
	}
	return z.costs.Restored(z.stored, -owed/1e9), 0
}

func (z *warmingBucket) next(now clock.Instant, n int32) (clock.Instant, bool) {
	return z.passTime(now, 0, n)
}

func (z *warmingBucket) nextInstead(now clock.Instant, n int32) (clock.Instant, bool) {
	return z.passTime(now, 0, n)
}

func (z *warmingBucket) nextBehind(head *waiter, between int64, now clock.Instant, n int32) (clock.Instant, bool) {
	return z.passTime(now, int64(head.tokens)+between, n)
}

// passTime returns when a call can pass with so many tokens ahead of it. Its own tokens
// do not matter: the calls behind it wait for them.
func (z *warmingBucket) passTime(now clock.Instant, ahead int64, _ int32) (clock.Instant, bool) {
	if z.compiled.rule.Limit == 0 {
		return 0, false
	}
	stored, owed := z.balance(now)
	owed += z.costs.Cost(stored, float64(ahead)) * 1e9
	if owed < atOnce {
		return now, true
	}
	return after(max(now, z.at), owed), true
}

func (*warmingBucket) delay(clock.Instant, clock.Instant, int32) {}

func (z *warmingBucket) grant(now, passAt clock.Instant, n int32) turn {
	stored, owed := z.balance(now)
	taken := min(stored, float64(n)) // the others are fresh
	z.stored, z.owed = stored-taken, owed+z.costs.Cost(stored, float64(n))*1e9
	z.given.tokens = min(z.given.most, z.given.tokens+float64(max(0, now.Sub(z.at)))*z.rate) - float64(n)
	z.at = max(z.at, now)
	if owed == 0 {
		z.idle = z.at
	}
	return turn{at: passAt, tokens: n, undoAt: z.at, undoAmount: taken}
}

// takeBack returns the tokens that were stored, and the time that all of them cost, unless
// that has passed and no call had to wait for it.
func (z *warmingBucket) takeBack(turn turn) bool {
	returned := min(turn.undoAmount, z.costs.Maximum()-z.stored)
	z.stored += returned
	z.given = z.given.after(returned)
	if turn.undoAt >= z.idle {
		fresh := float64(turn.tokens) - turn.undoAmount
		z.owed -= (z.costs.Cost(z.stored, returned) + z.costs.Cost(0, fresh)) * 1e9
	}
	return true
}

func (z *warmingBucket) adopt(r *compiledRule, now clock.Instant) schedule {
	stored, owed := z.balance(now)
	given := z.givenAt(now)
	share := min(1, stored/z.costs.Maximum())
	now = max(now, z.at)
	if r.warmsUp() {
		adopted := newWarmingBucket(r, now, share)
		adopted.owed = owed
		if z.unpaid != 0 {
			adopted.charge(z.unpaid, now)
		}
		adopted.given = given.in(adopted.costs.Maximum())
		return adopted
	}
	adopted := newTokenBucketOf(r, now, share, given)
	if owed > 0 {
		adopted.tokens = -owed * adopted.rate
	}
	if z.unpaid != 0 {
		adopted.tokens = min(adopted.tokens, float64(now.Sub(z.unpaid))*adopted.rate)
	}
	return adopted
}

// charge has the next call wait for as long as a token takes after a call that passed at an
// instant. Under a limit of 0 that is for ever, which a later limit must not inherit.
func (z *warmingBucket) charge(at, now clock.Instant) {
	if z.compiled.rule.Limit == 0 {
		z.unpaid = at
		return
	}
	z.owed = max(z.owed, z.costs.Cost(z.stored, 1)*1e9-float64(now.Sub(at)))
}

func (z *warmingBucket) givenAt(now clock.Instant) accrual {
	return z.given.after(float64(max(0, now.Sub(z.at))) * z.rate)
}

// resume lets the next call pass when a cold resource would after the last one.
func (z *warmingBucket) resume(log *passLog, now clock.Instant) {
	if at, ok := log.last(); ok {
		z.charge(at, now)
	}
}

// recent returns a token for the last call if it was not paid for yet.
func (z *warmingBucket) recent(now clock.Instant) (at clock.Instant, tokens int64) {
	if _, owed := z.balance(now); owed > 0 {
		return min(z.at, now), 1
	}
	return 0, 0
}

func (z *warmingBucket) status(waiters *waiterList, now clock.Instant, maxWait time.Duration) (limit float64, remaining int64, reset time.Duration) {
	if z.compiled.rule.Limit == 0 {
		return 0, 0, 0
	}
	stored, _ := z.balance(now)
	remaining, reset = remainingOf(z, waiters, now, maxWait)
	return z.costs.Limit(stored) * z.compiled.window().Seconds(), remaining, reset
}

func (z *warmingBucket) drained(now, last clock.Instant, tokens int64) tokenSchedule {
	then := *z
	stored, owed := z.balance(now)
	then.stored = max(0, stored-float64(tokens))
	then.owed = owed + z.costs.Cost(stored, float64(tokens))*1e9 - float64(max(0, last.Sub(max(now, z.at))))
	then.at = max(last, z.at)
	return &then
}

func (z *warmingBucket) isNew(now clock.Instant) bool {
	stored, owed := z.balance(now)
	return owed == 0 && stored >= z.costs.Maximum()
}
