package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// tokenBucket is the schedule of a token bucket:
//
//	tokens = min(burst, tokens + elapsed · limit / window)
//
// A call passes when the bucket holds as many tokens as it takes. With overdraft it
// passes when no tokens are owed, whatever it takes, and the calls behind it wait until
// the debt is paid.
//
// The bucket is brought up to date only when tokens are taken, and nothing is rounded:
// however many calls there are, no part of a token is lost.
type tokenBucket struct {
	compiled *compiledRule
	rate     float64       // tokens per nanosecond
	at       clock.Instant // when there were so many:
	tokens   float64       // below zero if some are owed
	full     clock.Instant // when a call last found it full
	given    accrual
}

// accrual is what a token bucket would hold by now if it had always been as large as it
// ever was: the tokens that have flowed in and were not taken. When the burst is changed
// a bucket keeps its share, but holds no more than that. So a burst that is lowered and
// raised again yields no tokens, and loses none.
type accrual struct {
	tokens float64
	most   float64 // the largest burst so far
}

// after returns the accrual when so many more tokens have flowed in.
func (s accrual) after(tokens float64) accrual {
	s.tokens = min(s.most, s.tokens+tokens)
	return s
}

// in returns the accrual for a bucket of a burst.
func (s accrual) in(burst float64) accrual {
	s.most = max(s.most, burst)
	return s
}

// newTokenBucket returns a bucket that holds a share of its burst.
func newTokenBucket(r *compiledRule, now clock.Instant, share float64) *tokenBucket {
	tokens := r.rule.Burst * share
	return &tokenBucket{
		compiled: r, rate: r.perNanosecond(), at: now, tokens: tokens, full: beforeAll, given: accrual{tokens, r.rule.Burst},
	}
}

// newTokenBucketOf returns a bucket that holds a share of its burst, but no more than has
// accrued.
func newTokenBucketOf(r *compiledRule, now clock.Instant, share float64, given accrual) *tokenBucket {
	b := newTokenBucket(r, now, share)
	b.tokens = min(b.tokens, max(0, given.tokens))
	b.given = given.in(r.rule.Burst)
	return b
}

// flowed returns the tokens that have flowed in by an instant.
func (b *tokenBucket) flowed(now clock.Instant) float64 {
	return float64(max(0, now.Sub(b.at))) * b.rate
}

// balance returns the tokens at an instant. If a call has brought a later one, it is the
// tokens at that.
func (b *tokenBucket) balance(now clock.Instant) float64 {
	return min(b.compiled.rule.Burst, b.tokens+b.flowed(now))
}

func (b *tokenBucket) next(now clock.Instant, n int32) (clock.Instant, bool) {
	return b.passTime(now, 0, n)
}

func (b *tokenBucket) nextInstead(now clock.Instant, n int32) (clock.Instant, bool) {
	return b.passTime(now, 0, n)
}

func (b *tokenBucket) nextBehind(head *waiter, between int64, now clock.Instant, n int32) (clock.Instant, bool) {
	return b.passTime(now, int64(head.tokens)+between, n)
}

// passTime returns when n tokens can be taken with so many ahead of them. Calls ahead
// take theirs as soon as they can, so the bucket does not overflow meanwhile.
func (b *tokenBucket) passTime(now clock.Instant, ahead int64, n int32) (clock.Instant, bool) {
	rule := b.compiled.rule
	needed := float64(ahead)
	if !rule.Overdraft {
		needed += float64(n)
	}
	if b.rate == 0 || !rule.Overdraft && float64(n) > rule.Burst {
		return 0, false
	}
	lacking := needed - b.balance(now)
	if lacking < atOnce*b.rate {
		return now, true
	}
	return after(max(now, b.at), lacking/b.rate), true
}

func (*tokenBucket) delay(clock.Instant, clock.Instant, int32) {}

func (b *tokenBucket) grant(now, passAt clock.Instant, n int32) turn {
	flowed := b.flowed(now)
	tokens := min(b.compiled.rule.Burst, b.tokens+flowed)
	b.given.tokens = min(b.given.most, b.given.tokens+flowed) - float64(n)
	b.at = max(b.at, now)
	if tokens >= b.compiled.rule.Burst*(1-1e-12) { // sums of fractions may fall short of it
		b.full = b.at
	}
	b.tokens = tokens - float64(n)
	return turn{at: passAt, tokens: n, undoAt: b.at}
}

// takeBack returns the tokens as though they had never been taken. If the bucket has been
// full since, they would have overflowed.
func (b *tokenBucket) takeBack(turn turn) bool {
	if turn.undoAt >= b.full {
		b.tokens += float64(turn.tokens)
		b.given = b.given.after(float64(turn.tokens))
	}
	return true
}

func (b *tokenBucket) adopt(r *compiledRule, now clock.Instant) schedule {
	tokens, given := b.balance(now), b.given.after(b.flowed(now))
	share := max(0, tokens) / b.compiled.rule.Burst
	now = max(now, b.at)
	if r.warmsUp() {
		z := newWarmingBucket(r, now, share)
		if b.rate > 0 {
			z.owed = max(0, -tokens/b.rate)
		}
		z.given = given.in(z.costs.Maximum())
		return z
	}
	adopted := newTokenBucketOf(r, now, share, given)
	adopted.tokens += min(0, tokens) // what is owed stays
	adopted.full = b.full
	return adopted
}

func (b *tokenBucket) resume(log *passLog, now clock.Instant) {
	b.tokens = log.balance(b.compiled.rule.Burst, b.rate, now)
	b.given.tokens = b.tokens
}

// recent returns how many tokens are missing in the bucket.
func (b *tokenBucket) recent(now clock.Instant) (at clock.Instant, tokens int64) {
	return now, int64(math.Ceil(b.compiled.rule.Burst - b.balance(now)))
}

func (b *tokenBucket) status(waiters *waiterList, now clock.Instant, maxWait time.Duration) (limit float64, remaining int64, reset time.Duration) {
	remaining, reset = remainingOf(b, waiters, now, maxWait)
	return b.compiled.rule.Limit, remaining, reset
}

func (b *tokenBucket) drained(now, last clock.Instant, tokens int64) tokenSchedule {
	then := *b
	then.tokens = b.balance(now) + float64(max(0, last.Sub(max(now, b.at))))*b.rate - float64(tokens)
	then.at = max(last, b.at)
	return &then
}

func (b *tokenBucket) isNew(now clock.Instant) bool {
	return b.rate == 0 || b.balance(now) >= b.compiled.rule.Burst
}
