package flow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
)

// Stores count whole tokens: a limit of half a token per window would pass nothing, ever.
func TestWindowsOfTheFleetHaveWholeLimits(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeWindow, fleet.ModeAsk} {
		for _, r := range []flow.Rule{reject(0.5), reject(2.5), fixedWindow(0.5)} {
			faults := flow.Kind().Faults(ofFleet(r, mode))
			if assert.Len(t, faults, 1, "%s %s %v", r.Algorithm, mode, r.Limit) {
				assert.Equal(t, "limit", faults[0].Field)
				assert.Contains(t, faults[0].Message, "whole number of tokens")
			}
		}
	}
	for _, sound := range []flow.Rule{
		ofFleet(reject(2.5), fleet.ModeLease), ofFleet(reject(2.5), fleet.ModeShare),
		ofFleet(bucket(2.5, 3), fleet.ModeAsk), ofFleet(reject(0), fleet.ModeWindow), ofFleet(reject(2), fleet.ModeAsk),
	} {
		assert.Empty(t, flow.Kind().Faults(sound))
	}
}
