package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// The clock may stand anywhere from the epoch on.
func TestAnEngineWhoseClockStandsElsewhere(t *testing.T) {
	for _, start := range []time.Time{time.Unix(0, 0), time.Unix(0, 5e8), time.Unix(1<<33, 0)} {
		c := clock.NewVirtual(start)
		e := core.New(core.Config{Clock: c, Logger: quiet})
		load(t, e, flow.Rule{Resource: "sliding", Limit: 3}, flow.Rule{Resource: "fixed", Limit: 3, Algorithm: flow.FixedWindow},
			flow.Rule{Resource: "bucket", Limit: 3, Algorithm: flow.TokenBucket}, flow.Rule{Resource: "throttle", Limit: 1, Algorithm: flow.Throttle})
		for range 3 {
			for name, want := range map[string]int{"sliding": 3, "fixed": 3, "bucket": 3, "throttle": 1} {
				assert.Equal(t, want, enter(e, name, 5), "%s at %v", name, c.Now().Time())
				assert.EqualValues(t, want, e.Resource(name).Minute()[59].Passed, "%s at %v", name, c.Now().Time())
			}
			c.Advance(time.Second)
		}
		e.Close()
	}
}
