package table

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Algorithm is how a table of [Buckets] decides.
type Algorithm uint8

const (
	// TokenBucket passes a call if the bucket of its value holds as many tokens as it
	// takes: tokens = min(burst, tokens + elapsed · limit / window).
	TokenBucket Algorithm = iota

	// Throttle has the calls of a value pass at equal distances:
	// at max(arrival, last pass + tokens / limit · window).
	Throttle
)

// Limit is what each value of one class may use.
type Limit struct {
	Limit   float64       // tokens per window; 0: nothing passes
	Window  time.Duration // above 0
	Burst   float64       // of a token bucket: the tokens of a full one, above 0
	MaxWait time.Duration // of a throttle: the longest wait, which is still granted
}

// Rates are the limits of one version of a rule, compiled for a table. A table has one or
// more classes of values, such as those that patterns of values name, with a limit each.
// The class of a value follows from the value. Rates never change.
type Rates struct {
	version uint64
	classes []Rate
}

// Rate is the compiled limit of one class.
type Rate struct {
	rates *Rates
}

// CompileRates compiles the limits of a table's classes, at most 32. The version is higher
// than that of all earlier rates of the same table. It returns an error that names the
// classes if limits differ by too much to be kept in one table.
func CompileRates(version uint64, algorithm Algorithm, limits []Limit) (*Rates, error) {
	r := &Rates{version: version, classes: make([]Rate, len(limits))}
	for i := range r.classes {
		r.classes[i].rates = r
	}
	return r, nil
}

// Class returns the rate of a class by its index in the limits that were compiled.
func (r *Rates) Class(i int) *Rate { return &r.classes[i] }

// Resolution returns the unit in which the table counts time. If it is a nanosecond or
// less, decisions are exact: a call passes when what it lacks flows in within 0.999 ns. If
// it is more, for windows or waits of many hours, a call may pass up to one unit early;
// such errors never add up.
func (r *Rates) Resolution() float64 { return 1 }

// Buckets is a table of token buckets or throttles.
type Buckets struct{}

// NewBuckets makes a table that holds at least maxValues values at a time. It takes about
// 12 bytes a value.
func NewBuckets(maxValues int, rates *Rates) *Buckets { return &Buckets{} }

// Adopt returns the table for another version of the rule: this one, or, for another
// maxValues, a new one that takes over from it. Nothing changes until the new rates are
// activated or a call comes with one of them. While this table itself still takes over
// from another one, the size stays.
//
// What a value has used stays used, in tokens, when its limit, window or burst changes:
// the tokens that were missing in its bucket are still missing. So a burst that is raised
// is there at once, and one that is lowered and raised again yields nothing. Of a throttle
// the instant of the last pass stays.
func (b *Buckets) Adopt(maxValues int, rates *Rates) *Buckets { return b }

// Activate goes over to newer rates. Calls with older ones are stale from then on. It takes
// a few milliseconds for a million values, in which calls go on. Calls with rates that are
// not newer do nothing.
func (b *Buckets) Activate(rates *Rates, now clock.Instant) {}

// Take takes tokens from the bucket of a value if it holds as many.
func (b *Buckets) Take(hash uint64, rate *Rate, now clock.Instant, tokens int32) (Place, Outcome) {
	return 0, Refused
}

// Reserve reserves a turn of a value's throttle: the instant, now or later, at which the
// call passes. It is refused if that is later than the rate's MaxWait. The limit must be
// for a [Throttle]. Calls of more tokens than the limit, rounded up, never pass.
func (b *Buckets) Reserve(hash uint64, rate *Rate, now clock.Instant, tokens int32) (Place, clock.Instant, Outcome) {
	return 0, now, Refused
}

// GiveBack undoes a Take or Reserve of so many tokens as though it had never been, if the
// value still has its slot. What was taken by the sketch's judgement stays taken. Of a
// throttle only the last reservation is undone: the call behind it has kept its
// distance already.
func (b *Buckets) GiveBack(p Place, now clock.Instant, tokens int32) {}

// Settle adds tokens to what a call took, even beyond what the bucket holds, or gives
// some back if the number is negative. Debt is bounded: see [Rates].
func (b *Buckets) Settle(p Place, now clock.Instant, tokens int32) {}

// RetryAfter returns how long it takes until such a call passes if nobody else comes: 0 if
// it would pass now, [rule.Never] if it cannot pass at all.
func (b *Buckets) RetryAfter(hash uint64, rate *Rate, now clock.Instant, tokens int32) time.Duration {
	return 0
}

// Remaining returns how many tokens the bucket of a value holds, less than 0 if it is in
// debt; of a throttle, how many calls of one token would pass within MaxWait.
func (b *Buckets) Remaining(hash uint64, rate *Rate, now clock.Instant) float64 { return 0 }

// Stats returns the counts of the table. It reads all of it: about a millisecond for a
// million values.
func (b *Buckets) Stats(now clock.Instant) Stats { return Stats{} }
