package sharing_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

// No second that is aligned to buckets has more than the limit and what each instance may use
// on debt: what its even share needs in 10 ms, whatever the demand.
func TestWindowPassesNoMoreThanItsLimitAndDebt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit     float64
		instances int
		load      float64 // times the limit
	}{
		{100, 3, 30},
		{100, 8, 2},
		{50, 10, 200},
		{1000, 1, 10},
		{1000, 2, 2},
		{1000, 4, 2},
		{1000, 8, 1},
		{1000, 8, 2},
		{1000, 8, 10},
		{100, 20, 20},
	} {
		t.Run(fmt.Sprintf("%.0f a second, %d instances, load %.0f", test.limit, test.instances, test.load), func(t *testing.T) {
			t.Parallel()
			mean := test.limit / float64(test.instances) * (10 * ms).Seconds()
			debt := max(1, math.Floor(mean+3.3*math.Sqrt(mean)))
			for seed := range uint64(3) {
				w := newWorld(seed, 1*ms)
				w.join(bucketOf(test.limit), fleet.ModeWindow, fleet.OutageLast, even(test.instances, test.load*test.limit)...)
				w.run(6 * time.Second)
				most := w.worst(0, 6*time.Second, time.Second, 100*ms)
				assert.LessOrEqual(t, most, int(test.limit+debt*float64(test.instances)), "seed %d", seed)
			}
		})
	}
}
