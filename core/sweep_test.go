package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// A call comes and goes at every reading of the clock of a sweep that has found its
// resource idle.
func TestACallDuringASweepKeepsItsResource(t *testing.T) {
	for reading := 1; reading <= 3; reading++ {
		c := &countdown{Virtual: clock.NewVirtual(begin)}
		e := core.New(core.Config{Clock: c, Logger: quiet})
		defer e.Close()
		load(t, e, flow.Rule{Match: "*", Limit: 1})
		enter(e, "n", 1)
		c.Advance(2 * time.Minute)
		passed := 0
		c.then = func() { passed += enter(e, "n", 1) }
		c.left = reading
		e.Snapshot()
		assert.LessOrEqual(t, passed+enter(e, "n", 1), 1, "called at reading %d", reading)
	}
}
