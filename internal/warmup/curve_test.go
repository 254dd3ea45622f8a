package warmup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/warmup"
)

func TestCurveCeiling(t *testing.T) {
	t.Parallel()
	// With T = 1000, W = 10 and c = 3 the warning line is at 5000 tokens and
	// the bucket holds 10000.
	c := warmup.NewCurve(1000, 10*time.Second, 3, time.Second)
	for stored, want := range map[float64]float64{
		0:      1000,
		4999:   1000,
		5000:   1000,
		6000:   1000 / 1.4,
		7500:   500,
		10_000: 1000 / 3.0,
	} {
		assert.InEpsilon(t, want, c.Limit(stored), 1e-9, "%v stored", stored)
	}
}

func TestCurveOfNothingAllowsNothing(t *testing.T) {
	t.Parallel()
	c := warmup.NewCurve(0, 10*time.Second, 3, time.Second)
	bucket := warmup.NewBucket(c, 0)
	for step := range int64(30) {
		bucket.Sync(c, step)
		assert.Zero(t, bucket.Limit(c))
	}
	assert.Zero(t, c.Limit(0))
}

func TestCurveSteps(t *testing.T) {
	t.Parallel()
	const second = 1_700_000_000
	start := clock.Instant(second * int64(time.Second))
	for step, want := range map[time.Duration]int64{
		time.Second:            second,
		100 * time.Millisecond: second * 10,
		time.Minute:            second / 60,
	} {
		c := warmup.NewCurve(10, time.Minute, 3, step)
		first := clock.Instant(want * int64(step))
		assert.Equal(t, want, c.Step(start), "steps of %v", step)
		assert.Equal(t, want, c.Step(first), "a step of %v begins with its first nanosecond", step)
		assert.Equal(t, want-1, c.Step(first-1))
		assert.Equal(t, first, c.StepStart(want))
		assert.Equal(t, want, c.Step(first.Add(step)-1), "and ends with its last")
	}
}

func ExampleCurve() {
	// 1000 per second, warm after 10 seconds of full load.
	curve := warmup.NewCurve(1000, 10*time.Second, 3, time.Second)
	bucket := warmup.NewBucket(curve, 0)
	for second := range int64(13) {
		bucket.Sync(curve, second)
		ceiling := bucket.Limit(curve)
		fmt.Printf("%.0f ", ceiling)
		bucket.AddPassed(second, int64(ceiling))
	}
	// Output: 333 349 367 387 412 442 480 528 595 692 856 1000 1000
}
