package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// Attr is an attribute of the calls of a stream: a name, and values for one call
// after the other. It has either Values or a Count.
type Attr struct {
	// Name is what rules call it: "user".
	Name string

	// Values are used in turn: the k-th call of the stream, counted from 0, has
	// the value at k modulo their number. Each is a string, an int, an int64 or a
	// bool. "7" and 7 differ, and so do "true" and true.
	Values []any

	// Count makes so many different values, of the form "user-1", and Shape says
	// how often each occurs. At most 10 million.
	Count int

	// Shape is that of a Count: [Cycle], the default, [Uniform] or [Zipf].
	Shape Shape
}

// attribute makes the values of an [Attr].
type attribute struct {
	Attr
	random *rand.Rand
}

func newAttributes(load Load, stream int) []attribute {
	attrs := load.Streams[stream].Attrs
	list := make([]attribute, len(attrs))
	for i, attr := range attrs {
		list[i] = attribute{Attr: attr, random: newRandom(load.Seed, randomAttrs, stream, i)}
	}
	return list
}

// value returns the value for the k-th call of the stream. It must be called for
// one call after the other.
func (a *attribute) value(k uint64) any {
	if len(a.Values) > 0 {
		v, _ := plainValue(a.Values[k%uint64(len(a.Values))]) // the load is valid
		return v
	}
	var n int
	switch a.Shape {
	case Uniform:
		n = 1 + a.random.IntN(a.Count)
	case Zipf:
		n = zipf(a.random, a.Count)
	default:
		n = 1 + int(k%uint64(a.Count))
	}
	return a.Name + "-" + strconv.Itoa(n)
}

// zipf draws a number from 1 to count, n with a probability in proportion to 1/n.
// It is the rejection-inversion method of Hörmann and Derflinger, for the
// exponent 1: it needs no table.
func zipf(random *rand.Rand, count int) int {
	first := math.Log(1.5) - 1
	last := math.Log(float64(count) + 0.5)
	const squeeze = 2 - 2.5/math.SqrtE // 2 - H⁻¹(H(2.5) - 1/2)
	for {
		u := last + random.Float64()*(first-last)
		x := math.Exp(u)
		n := min(max(math.Round(x), 1), float64(count))
		if n-x <= squeeze || u >= math.Log(n+0.5)-1/n {
			return int(n)
		}
	}
}

// The purposes that random numbers are for. Each has sequences of its own, so
// that one does not depend on another.
const (
	randomGaps uint64 = iota
	randomAttrs
	randomService
	randomLimiters
	randomDealing
	randomNetwork
	randomVisits
	randomCosts
)

// limiterSeed returns the seed of what the limiters of an instance choose at random. It is
// never 0, for then an engine would choose the seed at random.
func limiterSeed(load Load, instance int) uint64 {
	return max(1, newRandom(load.Seed, randomLimiters, 0, instance).Uint64())
}

// newRandom returns a sequence of random numbers for a purpose. The indexes tell
// apart sequences with the same purpose.
func newRandom(seed, purpose uint64, index, second int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, purpose<<56|uint64(second)<<32|uint64(index))) //nolint:gosec // it is to be reproducible
}

// plainValue returns an attribute's value as rules compare it: a string, an int64
// or a bool. It is false for everything else.
func plainValue(value any) (any, bool) {
	switch v := value.(type) {
	case string, int64, bool:
		return v, true
	case int:
		return int64(v), true
	}
	return nil, false
}
