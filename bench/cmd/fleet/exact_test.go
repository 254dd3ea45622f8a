package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

func TestOneCounterPassesExactlyItsLimitInOverload(t *testing.T) {
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		s := scenario{Mode: mode, Limit: 100, Load: 2, Seed: 1}
		assert.InDelta(t, 0.5, s.refusedByOne(), 0.005, mode)
	}
}

// Of 80 calls a second that come independently of each other, one in 270 is one too many.
func TestOneCounterRefusesSomeBelowItsLimitIfThatIsSmall(t *testing.T) {
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		small, large := scenario{Mode: mode, Limit: 100, Load: spare, Seed: 1}, scenario{Mode: mode, Limit: 1000, Load: spare, Seed: 1}
		assert.InDelta(t, 0.0037, small.refusedByOne(), 0.0007, mode)
		assert.Less(t, large.refusedByOne(), 0.00001, mode)
	}
}
