package table

import (
	"flag"
	"math/big"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
)

// reference is one value of an unbounded table in exact arithmetic: what it has used, as
// tokens that are missing (TokenBucket), or when its last call passed (Throttle).
type reference struct {
	limit   Limit
	missing *big.Rat
	at      clock.Instant
	last    *big.Rat // nil: never
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (r *reference) rate() *big.Rat { // tokens per nanosecond
	if r.limit.Limit == 0 { // what was used is forgotten as with a limit of 1
		return big.NewRat(1, int64(r.limit.Window))
	}
	return new(big.Rat).Quo(decimal(r.limit.Limit), rat(int64(r.limit.Window)))
}

func (r *reference) flow(now clock.Instant) {
	if r.missing == nil {
		r.missing = new(big.Rat)
	}
	if now > r.at {
		r.missing.Sub(r.missing, new(big.Rat).Mul(r.rate(), rat(int64(now.Sub(r.at)))))
		if r.missing.Sign() < 0 {
			r.missing.SetInt64(0)
		}
		r.at = now
	}
}

// lacking returns how many nanoseconds a call lacks: it may pass if that is less than 0.999.
func (r *reference) lacking(now clock.Instant, tokens int32) *big.Rat {
	r.flow(now)
	lack := new(big.Rat).Add(r.missing, rat(int64(tokens)))
	lack.Sub(lack, decimal(r.limit.Burst))
	return lack.Quo(lack, r.rate())
}

// take decides as the token bucket does.
func (r *reference) take(now clock.Instant, tokens int32) bool {
	if r.limit.Limit == 0 || decimal(r.limit.Burst).Cmp(rat(int64(tokens))) < 0 {
		return false
	}
	if r.lacking(now, tokens).Cmp(big.NewRat(999, 1000)) >= 0 {
		return false
	}
	r.missing.Add(r.missing, rat(int64(tokens)))
	return true
}

// add makes the value have used more tokens, or fewer.
func (r *reference) add(now clock.Instant, tokens int64) {
	r.flow(now)
	if r.missing.Add(r.missing, rat(tokens)); r.missing.Sign() < 0 {
		r.missing.SetInt64(0)
	}
}

// reserve decides as a throttle does.
func (r *reference) reserve(now clock.Instant, tokens int32) (clock.Instant, bool) {
	if r.limit.Limit == 0 || int64(tokens) > r.limit.largestThrottled() {
		return 0, false
	}
	passes := rat(int64(now))
	if r.last != nil {
		next := new(big.Rat).Quo(rat(int64(tokens)), r.rate())
		next.Add(next, r.last)
		if next.Cmp(passes) > 0 {
			passes = next
		}
	}
	at := clock.Instant(ceiling(passes))
	if at.Sub(now) > r.limit.MaxWait {
		return 0, false
	}
	r.last = passes
	return at, true
}

// hashOf returns a hash of a number that is spread as those of a seeded hash are.
func hashOf(n uint64) uint64 { return splitmix.Mix(n*golden + 0x1234567) }

func mustCompile(version uint64, algorithm Algorithm, limits ...Limit) *Rates {
	r, err := CompileRates(version, algorithm, limits)
	if err != nil {
		panic(err)
	}
	return r
}

func perSecond(limit, burst float64) Limit {
	return Limit{Limit: limit, Window: time.Second, Burst: burst}
}

const start = clock.Instant(1_700_000_000_000_000_000)

// distinctValues is how many values [TestEndlessNewValuesTakeNoMemory] goes through.
var distinctValues = flag.Uint64("distinct", 0, "distinct values of the test of flat memory; default 1,000,000")

// Take takes tokens from the bucket of a value if it holds as many. The rate must be for a
// [TokenBucket]. A call of more tokens than the burst never passes.
func (b *Buckets) Take(hash uint64, r *Rate, now clock.Instant, tokens int32) (Place, Outcome) {
	p, _, outcome := b.TakeOrWait(hash, r, now, tokens, NoSource)
	return p, outcome
}

// Take counts tokens for a value if they and those in its window are no more than the
// limit, which is at most 2³²−1.
func (w *Windows) Take(hash uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32) (Place, Outcome) {
	return w.TakeFrom(hash, terms, limit, now, tokens, NoSource)
}

// Resolution returns the unit in which the table counts time, in nanoseconds. See [Rates.Exact].
func (r *Rates) Resolution() float64 { return r.resolution }

// Exact says whether decisions are those of exact arithmetic: a call passes when what it
// lacks flows in within 0.999 ns. If not, instants are rounded to the resolution, and a
// call may pass by up to one unit too early or too late. Such errors do not add up. Rates
// are exact for most limits that fill a bucket within an hour and a half; otherwise the
// resolution is about a 6·10¹²th of that time. With several classes it is coarser, by up to
// 32 times.
func (r *Rates) Exact() bool { return r.exact }
