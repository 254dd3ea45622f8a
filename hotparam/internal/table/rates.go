package table

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
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
	Limit   float64       // tokens per window; 0: nothing passes, and what was used flows back as with 1
	Window  time.Duration // above 0
	Burst   float64       // of a token bucket: the tokens of a full one, above 0
	MaxWait time.Duration // of a throttle: the longest wait, which is still granted
}

// MaxClasses is how many classes of values one table can have.
const MaxClasses = 32

// Rates are the limits of one version of a rule, compiled for a table. A table has one or
// more classes of values, such as those that patterns of values name, with a limit each.
// The class of a value follows from the value. Rates never change; several tables may use
// the same.
type Rates struct {
	version    uint64
	classes    []Rate
	resolution float64 // nanoseconds per unit in which the table counts time

	// exact says whether decisions are those of exact arithmetic: a call passes when what it
	// lacks flows in within 0.999 ns. If not, instants are rounded to the resolution, and a
	// call may pass by up to one unit too early or too late. Such errors do not add up. Rates
	// are exact for most limits that fill a bucket within an hour and a half; otherwise the
	// resolution is about a 6·10¹²th of that time. With several classes it is coarser, by up to
	// 32 times.
	exact bool
}

// Rate is the compiled limit of one class.
//
// A table keeps one instant per value: when the value is as new, that is when its bucket
// is full. How far that is ahead of now is what the value has used:
//
//	TokenBucket: ahead = missing tokens · cost
//	Throttle:    ahead = last pass + span − now
//
// A call moves the instant by the cost of its tokens, and is refused if it were then
// further ahead than the top.
type Rate struct {
	scale
	rates *Rates
	class uint64 // the number of the class, where words have it
	most  int64  // the tokens of the largest call that can pass; 0: nothing passes
	cost  int64  // units per token
	span  int64  // Throttle: how long a pass matters to later calls; else 0
	top   int64  // TokenBucket: the burst, and what may lack; Throttle: the span and MaxWait
	lack  int64  // TokenBucket: what may lack when a call passes
	grace int64  // TokenBucket: how long a value may keep its slot once it is as new
}

// scale is how words of one version hold instants: as units of time, modulo 2^timeBits.
type scale struct {
	toUnits             factor // units per nanosecond
	toTime              factor // nanoseconds per unit
	timeMask, classMask uint64
	epoch               uint  // an epoch is so many nanoseconds, as a power of two
	slack               int64 // two epochs, in units: how far behind now an instant may lie
	furthest            int64 // that an instant may be ahead of now, in units
	timeBits            uint
	rounds              int64 // units by which a distance may be too long because now is rounded down
}

// factor is a positive number in binary fixed point.
type factor struct{ whole, fraction uint64 }

// times returns the product with a number, rounded down, modulo 2⁶⁴.
func (f factor) times(n uint64) uint64 {
	high, _ := bits.Mul64(n, f.fraction)
	return n*f.whole + high
}

// timesUp returns the product with a number that is not negative, rounded up, but no more
// than the largest number.
func (f factor) timesUp(n int64) int64 {
	over, low := bits.Mul64(uint64(n), f.whole)
	high, rest := bits.Mul64(uint64(n), f.fraction)
	if rest != 0 {
		high++
	}
	sum, carry := bits.Add64(low, high, 0)
	if over+carry != 0 || sum > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(sum)
}

// Class returns the rate of a class by its index in the limits that were compiled.
func (r *Rates) Class(i int) *Rate { return &r.classes[i] }

// MaxDebt returns how long a value can be kept from passing by what [Buckets.Settle] adds:
// at least three times the time in which a bucket fills. What would go beyond it is
// dropped.
func (r *Rates) MaxDebt() time.Duration {
	s := &r.classes[0].scale
	return time.Duration(s.toTime.timesUp(s.furthest))
}

// CompileRates compiles the limits of a table's classes, of which there are 1 to
// [MaxClasses]. The version is higher than that of all earlier rates of the same table.
// The error says what is wrong with which limits. Limits that differ by too much cannot be
// kept in one table.
func CompileRates(version uint64, algorithm Algorithm, limits []Limit) (*Rates, error) {
	if err := check(algorithm, limits); err != nil {
		return nil, err
	}
	timeBits := uint(stateBits - bits.Len(uint(len(limits)-1)))
	intervals, extents := make([]*big.Rat, len(limits)), make([]*big.Rat, len(limits))
	for i, limit := range limits {
		intervals[i], extents[i] = limit.distances(algorithm)
	}
	unit, exact, err := chooseUnit(intervals, extents, timeBits)
	if err != nil {
		return nil, err
	}
	resolution, _ := unit.Float64()
	r := &Rates{version: version, classes: make([]Rate, len(limits)), resolution: resolution, exact: exact}
	s := newScale(unit, exact, timeBits)
	for i, limit := range limits {
		r.classes[i] = Rate{scale: s, rates: r, class: uint64(i) << timeBits}
		if err := r.classes[i].compile(algorithm, limit, intervals[i], unit); err != nil {
			return nil, fmt.Errorf("table: limit %d: %w", i, err)
		}
	}
	return r, nil
}

func check(algorithm Algorithm, limits []Limit) error {
	if len(limits) == 0 || len(limits) > MaxClasses {
		return fmt.Errorf("table: %d different limits; a table takes 1 to %d", len(limits), MaxClasses)
	}
	var faults []error
	for i, l := range limits {
		if !(l.Limit >= 0 && l.Limit <= math.MaxInt32) {
			faults = append(faults, fmt.Errorf("table: limit %d is %g; it must be from 0 to %d", i, l.Limit, math.MaxInt32))
		}
		if l.Window <= 0 {
			faults = append(faults, fmt.Errorf("table: the window of limit %d is %v; it must be above 0", i, l.Window))
		}
		if algorithm == TokenBucket && !(l.Burst > 0 && l.Burst <= math.MaxInt32) {
			faults = append(faults, fmt.Errorf("table: the burst of limit %d is %g; it must be above 0, at most %d", i, l.Burst, math.MaxInt32))
		}
		if l.MaxWait < 0 {
			faults = append(faults, fmt.Errorf("table: the longest wait of limit %d is %v; it must not be negative", i, l.MaxWait))
		}
	}
	return errors.Join(faults...)
}

// distances returns the time per token and the furthest that a value can be ahead of now
// without debt, in nanoseconds.
func (l Limit) distances(algorithm Algorithm) (interval, extent *big.Rat) {
	limit := decimal(l.Limit)
	if l.Limit == 0 {
		limit.SetInt64(1) // for what was used before, until the limit is raised again
	}
	interval = new(big.Rat).Quo(new(big.Rat).SetInt64(int64(l.Window)), limit)
	if algorithm == TokenBucket {
		return interval, new(big.Rat).Mul(interval, decimal(l.Burst))
	}
	extent = new(big.Rat).Mul(interval, new(big.Rat).SetInt64(l.largestThrottled()))
	return interval, extent.Add(extent, new(big.Rat).SetInt64(int64(l.MaxWait)))
}

// largestThrottled returns the tokens of the largest call that a throttle lets pass.
func (l Limit) largestThrottled() int64 { return max(1, int64(math.Ceil(l.Limit))) }

// decimal returns the number that a person would read: 0.1 is a tenth.
func decimal(f float64) *big.Rat {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return r
}

// chooseUnit returns the unit of time for all classes of a table, in nanoseconds. It is a
// whole part of a nanosecond, so that all instants and costs are whole numbers, if there is
// such a unit with which the table holds four times the extents. Otherwise it is the
// smallest binary part of the first interval with which it does. No unit is so small that an
// epoch is shorter than a second: blocks are not to be swept all the time.
func chooseUnit(intervals, extents []*big.Rat, timeBits uint) (unit *big.Rat, exact bool, err error) {
	longest, whole := new(big.Rat), big.NewInt(1)
	for i := range intervals {
		if extents[i].Cmp(longest) > 0 {
			longest = extents[i]
		}
		for _, d := range []*big.Int{intervals[i].Denom(), extents[i].Denom()} {
			whole.Mul(whole, new(big.Int).Quo(d, new(big.Int).GCD(nil, nil, whole, d)))
		}
	}
	if longest.Cmp(new(big.Rat).SetInt64(1<<60)) > 0 {
		return nil, false, errors.New("table: a limit that takes more than 36 years to be used again")
	}
	smallest := new(big.Rat).Quo(new(big.Rat).SetInt64(4), new(big.Rat).SetInt64(3<<timeBits>>2))
	smallest.Mul(smallest, longest)
	if least := big.NewRat(1, 1<<(timeBits-34)); smallest.Cmp(least) < 0 {
		smallest = least
	}
	if part := new(big.Rat).SetFrac(big.NewInt(1), whole); part.Cmp(smallest) >= 0 {
		return part, true, nil
	}
	unit = new(big.Rat).Set(intervals[0])
	half := big.NewRat(1, 2)
	for next := new(big.Rat).Mul(unit, half); next.Cmp(smallest) >= 0; next = new(big.Rat).Mul(unit, half) {
		unit = next
	}
	if unit.Cmp(smallest) < 0 {
		return nil, false, errors.New("table: limits differ by too much to be kept in one table: one takes longer to be used again than another takes for a million million calls")
	}
	return unit, false, nil
}

func newScale(unit *big.Rat, exact bool, timeBits uint) scale {
	s := scale{
		toTime: fixedPoint(unit, false), toUnits: fixedPoint(new(big.Rat).Inv(unit), true),
		timeBits: timeBits, timeMask: 1<<timeBits - 1, classMask: 1<<stateBits - 1<<timeBits,
	}
	s.epoch = 62
	for s.toUnits.timesUp(1<<s.epoch) > 1<<(timeBits-4)-2 {
		s.epoch--
	}
	s.slack = 2 * (s.toUnits.timesUp(1<<s.epoch) + 1)
	s.furthest = 1<<timeBits - 2*s.slack
	if !exact {
		s.rounds = 1
	}
	return s
}

// fixedPoint returns a number as a factor, rounded up or down. Units per nanosecond are
// rounded up, so that a distance of whole units between two instants stays as long.
func fixedPoint(x *big.Rat, up bool) factor {
	scaled := new(big.Int).Lsh(x.Num(), 64)
	rest := new(big.Int)
	scaled.QuoRem(scaled, x.Denom(), rest)
	if up && rest.Sign() > 0 {
		scaled.Add(scaled, big.NewInt(1))
	}
	low := new(big.Int)
	high, _ := new(big.Int).QuoRem(scaled, new(big.Int).Lsh(big.NewInt(1), 64), low)
	return factor{whole: high.Uint64(), fraction: low.Uint64()}
}

// leastCost is the smallest cost of a token that is not a whole number of units. Rounding
// it up makes the limit smaller by less than a thousandth.
const leastCost = 1 << 10

func (r *Rate) compile(algorithm Algorithm, l Limit, interval, unit *big.Rat) error {
	units := new(big.Rat).Quo(interval, unit)
	r.cost = ceiling(units)
	if !units.IsInt() && r.cost < leastCost {
		return errors.New("limits differ by too much to be kept in one table")
	}
	if algorithm == Throttle {
		r.most = l.largestThrottled()
		r.span = r.most * r.cost
		r.top = r.span + r.toUnits.timesUp(int64(l.MaxWait)) + r.rounds
	} else {
		r.most = int64(l.Burst)
		burst := new(big.Rat).Mul(decimal(l.Burst), new(big.Rat).SetInt64(r.cost))
		r.top = new(big.Int).Quo(burst.Num(), burst.Denom()).Int64()
		r.lack = r.tolerance(unit)
		r.top += r.lack
		// Beyond an epoch, an instant that has come cannot be told from one that has not.
		r.grace = min(l.largestThrottled()*r.cost, r.slack/2-1)
	}
	if l.Limit == 0 {
		r.most = 0
	}
	return nil
}

// tolerance returns the units that a call may lack: less than 0.999 ns.
func (r *Rate) tolerance(unit *big.Rat) int64 {
	atOnce := new(big.Rat).Quo(big.NewRat(999, 1000), unit)
	return max(0, ceiling(atOnce)-1-r.rounds)
}

func ceiling(x *big.Rat) int64 {
	whole, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64()
}

// units returns an instant in units, modulo 2⁶⁴.
func (s *scale) units(now clock.Instant) uint64 { return s.toUnits.times(uint64(now)) }

// ahead returns how far the instant in a word is ahead of now, in units; 0 if it has come.
func (s *scale) ahead(word, now uint64) int64 {
	return max(0, int64((word-now+uint64(s.slack))&s.timeMask)-s.slack)
}

// behind is ahead without the lower bound: below 0, the instant has come so long ago.
func (s *scale) behind(word, now uint64) int64 {
	return int64((word-now+uint64(s.slack))&s.timeMask) - s.slack
}

// after returns how far ahead of now the instant is after a call of so many tokens, and
// whether the call may pass.
func (r *Rate) after(ahead int64, tokens int32) (next int64, pass bool) {
	next = max(r.span, ahead+int64(tokens)*r.cost)
	return next, next <= r.top
}

// costOf returns the cost of tokens in units, but no more than the furthest that an instant may be ahead.
func (r *Rate) costOf(tokens int64) int64 {
	if tokens > r.furthest/r.cost {
		return r.furthest
	}
	return tokens * r.cost
}

// from converts what a value of another rate has used, so that as many tokens are used, or
// the last pass was at the same instant.
func (r *Rate) from(other *Rate, ahead int64) int64 {
	if ahead <= 0 || r.rates == other.rates && r.class == other.class {
		return ahead
	}
	if r.span > 0 {
		return min(r.furthest, max(0, r.lastPass(other, ahead-other.span)+r.span))
	}
	high, low := bits.Mul64(uint64(ahead), uint64(r.cost))
	low, carry := bits.Add64(low, uint64(other.cost-1), 0)
	if high+carry >= uint64(other.cost) {
		return r.furthest
	}
	used, _ := bits.Div64(high+carry, low, uint64(other.cost))
	return int64(min(used, uint64(r.furthest)))
}

// lastPass converts a distance to now from units of another rate.
func (r *Rate) lastPass(other *Rate, distance int64) int64 {
	if r.toUnits == other.toUnits {
		return min(r.furthest, distance)
	}
	if distance < 0 {
		return -int64(r.toUnits.times(other.toTime.times(uint64(-distance))))
	}
	return min(r.furthest, r.toUnits.timesUp(other.toTime.timesUp(distance)))
}

// estimateFrom converts an estimate of older rates, in nanoseconds ahead of now, so that
// it is not too low for a value of any class.
func (r *Rates) estimateFrom(older *Rates, ahead int64) int64 {
	if ahead <= 0 || r == older {
		return ahead
	}
	most := int64(0)
	for i := range older.classes {
		from := &older.classes[i]
		for j := range r.classes {
			to := &r.classes[j]
			units := min(from.furthest, from.toUnits.timesUp(ahead))
			most = max(most, to.toTime.timesUp(to.from(from, units)))
		}
	}
	return most
}
