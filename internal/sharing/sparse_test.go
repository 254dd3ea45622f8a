package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
)

// Calls that are so rare that no tokens are leased ahead pass on debt. That too is only while
// the limit has tokens left.
func TestSparseCallsPassNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("slow, and nothing in it is concurrent")
	}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		for _, n := range longtest.Of([]int{8}, []int{1, 8}) {
			w := newWorld(uint64(n), 2*time.Millisecond)
			terms := fleet.Terms{Key: "flow/a", Limit: 60, Window: time.Hour, Burst: 6, Buckets: 10}
			w.join(terms, mode, fleet.OutageLast, even(n, 0.2)...)
			const end = 2 * time.Hour
			w.run(end)
			passes, calls := w.total(0, end)
			worst := w.worst(0, end, time.Hour, 6*time.Minute)
			t.Logf("%s %d instances: %d of %d passed, in an hour at most %d", mode, n, passes, calls, worst)
			most := 60 + n
			if mode == fleet.ModeLease {
				most += int(terms.Burst)
			}
			assert.LessOrEqual(t, worst, most, "%s, %d instances", mode, n)
			assert.GreaterOrEqual(t, passes, 2*60*3/4, "%s, %d instances", mode, n)
		}
	}
}

// What the limit has left passes, although it comes rarely and to one instance.
func TestSparseCallsUnderTheLimitPass(t *testing.T) {
	t.Parallel()
	skipLong(t)
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		w := newWorld(1, 2*time.Millisecond)
		terms := fleet.Terms{Key: "flow/a", Limit: 600, Window: time.Hour, Burst: 60, Buckets: 10}
		w.join(terms, mode, fleet.OutageLast, 0.1, 0, 0, 0, 0)
		w.run(2 * time.Hour)
		passes, calls := w.total(0, 2*time.Hour)
		t.Logf("%s: %d of %d passed with %d requests", mode, passes, calls, w.requests)
		assert.GreaterOrEqual(t, float64(passes), 0.99*float64(calls), mode)
	}
}
