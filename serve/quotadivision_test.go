package serve

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

// newDivision returns a division among data planes of these demands.
func newDivision(limit float64, demands ...float64) *division {
	d := &division{interval: 5 * time.Second, ttl: 30 * time.Second, limit: limit, burst: limit}
	for i, demand := range demands {
		d.join(&quotaShare{stream: &quotaStream{peer: string(rune(0x61 + i))}, bucket: &quotaBucket{}, demand: demand, reported: true})
	}
	return d
}

func (d *division) parts() (parts []float64) {
	for _, s := range d.shares {
		parts = append(parts, s.part)
	}
	return parts
}

func TestLimitIsDividedMaxMin(t *testing.T) {
	for _, test := range []struct {
		limit   float64
		demands []float64
		parts   []float64
	}{
		{900, []float64{0, 0, 0}, []float64{300, 300, 300}},
		{900, []float64{100, 1000, 5000}, []float64{110, 400, 400}},
		{900, []float64{0, 1000, 5000}, []float64{15, 442.5, 442.5}},
		{900, []float64{500, 500, 500}, []float64{300, 300, 300}},
		{0, []float64{5, 0}, []float64{0, 0}},
		{math.Inf(1), []float64{5, 0}, []float64{math.Inf(1), math.Inf(1)}},
	} {
		d := newDivision(test.limit, test.demands...)
		d.divide(0, nil)
		assert.Equal(t, test.parts, d.parts())
	}
	// Who demands less than there is gets what is left, too.
	d := newDivision(1000, 100, 400)
	d.divide(0, nil)
	assert.InDelta(t, 1000, d.parts()[0]+d.parts()[1], 1e-6)
	assert.Greater(t, d.parts()[0], 110.0)
	assert.Greater(t, d.parts()[1], 430.0)
}

func TestPartsPassTheLimitWhateverTheDemand(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		limit := math.Pow(10, random.Float64()*7)
		demands := make([]float64, 1+random.IntN(60))
		total := 0.0
		for i := range demands {
			if random.IntN(3) > 0 {
				demands[i] = limit / float64(len(demands)) * math.Pow(10, random.Float64()*4-2)
			}
			total += demands[i]
		}
		d := newDivision(limit, demands...)
		d.divide(0, nil)
		passed, level := 0.0, 0.0
		for i, part := range d.parts() {
			passed += min(demands[i], part)
			level = max(level, part)
		}
		least := quotaLeast * limit // what is left to those without demand
		assert.LessOrEqual(t, passed, limit*(1+1e-9))
		assert.GreaterOrEqual(t, passed, min(total, limit-least)*(1-1e-9), "%v of %v", demands, limit)
		for i, part := range d.parts() {
			if part < demands[i] {
				assert.InEpsilon(t, level, part, 1e-9, "somebody has more than one that is cut off")
			}
		}
	}
}

func TestPartOfALostStreamIsReservedUntilItsAssignmentEnds(t *testing.T) {
	start := func() *division {
		d := newDivision(1000, 900, 100)
		d.divide(0, nil)
		return d
	}
	fresh := func(peer string) *quotaShare {
		return &quotaShare{stream: &quotaStream{peer: peer}, bucket: &quotaBucket{}, reported: true, demand: 5000}
	}
	at := clock.Instant(time.Second)

	lost := start()
	had := lost.shares[0].assignment.rate
	lost.end(lost.shares[0], false)
	other := fresh("c")
	lost.join(other)
	lost.divide(at, nil)
	assert.InDelta(t, 1000-had, other.part+lost.shares[1].part, 1000*quotaHeadroom, "beside what the lost one may go on with")
	for _, s := range lost.shares {
		s.reportedAt = at.Add(29 * time.Second)
	}
	lost.divide(at.Add(29*time.Second), nil)
	assert.Len(t, lost.shares, 2, "its assignment has ended")
	assert.Greater(t, other.part, 850.0)

	back := start()
	back.end(back.shares[0], false)
	same := fresh("a")
	back.join(same)
	assert.InDelta(t, had, same.assignment.rate, 0, "it goes on with what it has")
	back.divide(at, nil)
	assert.Greater(t, same.part, 850.0)
	assert.Len(t, back.shares, 2)

	clean := start()
	clean.end(clean.shares[0], true)
	other = fresh("c")
	clean.join(other)
	clean.divide(at, nil)
	assert.Greater(t, other.part, 850.0)
}

func TestAssignmentIsNearItsRate(t *testing.T) {
	var before assignment
	for rate := 0.001; rate < 1e9; rate *= 1.37 {
		a := assignmentOf(rate, math.Inf(1), burstTime, before)
		assert.InEpsilon(t, rate, a.rate, 1.5/precision)
		assert.InDelta(t, float64(a.tokens)/float64(a.interval), a.rate, 1e-9)
		assert.GreaterOrEqual(t, a.maxTokens, uint32(minBurst))
		before = a
	}
	// Envoy does not see that only the seconds of the interval are others.
	first := assignmentOf(300, 1, burstTime, assignment{})
	second := assignmentOf(30, 1, burstTime, first)
	assert.NotEqual(t, first.tokens, second.tokens)
	assert.Equal(t, assignment{}, assignmentOf(0, 1, burstTime, first))
	assert.True(t, math.IsInf(assignmentOf(math.Inf(1), 1, burstTime, first).rate, 1))
	assert.EqualValues(t, 3, assignmentOf(2, 3, burstTime, first).maxTokens, "no more than the limit")
}

func TestBucketKeysOfDifferentBucketsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range []struct {
		domain string
		id     map[string]string
	}{
		{"d", map[string]string{"a": "b"}},
		{"da", map[string]string{"": "b"}},
		{"d", map[string]string{"ab": ""}},
		{"d", map[string]string{"a": "b", "c": "d"}},
		{"d", map[string]string{"a": "b1:c1:d"}},
		{"d", map[string]string{"c": "d", "a": "b1:"}},
	} {
		key := string(appendBucketKey(nil, b.domain, b.id))
		assert.False(t, seen[key], key)
		seen[key] = true
	}
	two := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7", "h": "8", "i": "9"}
	key := appendBucketKey(nil, "d", two)
	for range 100 { // in whatever order a map is read
		assert.Equal(t, key, appendBucketKey(nil, "d", maps.Clone(two)))
	}
}
