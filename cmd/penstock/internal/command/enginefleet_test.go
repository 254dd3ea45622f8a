package command

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/inspect"
)

func TestStatusShowsWhatEachInstanceUsesOfALimit(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	writeFleet(&text, nil)
	assert.Empty(t, text.String())
	writeFleet(&text, &inspect.Fleet{
		Rules: 1, Instance: "a", Connected: true, Latency: 0.0012, Outages: 2, Instances: 2,
		Limits: []inspect.FleetLimit{{
			Key: "flow/quota", Mode: "lease", Limit: 1000, Window: "1s", Demand: 600, Passed: 500,
			Fleet:  &inspect.FleetUse{Demand: 900, Passed: 700},
			Shares: []inspect.FleetUse{{Instance: "a", Demand: 600, Passed: 500}, {Instance: "b", Demand: 300, Passed: 200}},
		}},
	})
	assert.Contains(t, text.String(), "fleet: connected as a, 2 instances, answers take 1.2ms, 2 outages so far, 1 rule")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	for i, want := range []string{"(all)", "a", "b"} {
		assert.Equal(t, want, strings.Fields(lines[len(lines)-3+i])[5])
	}

	for of, want := range map[inspect.Ceiling]string{
		inspect.Ceiling(math.Inf(1)): "open, all calls pass here",
		0:                            "open, nothing passes here",
		12.5:                         "open, 12.5/s may pass here: no memory",
	} {
		limit := inspect.FleetLimit{Key: "flow/quota", Mode: "lease", OnOutage: "open", Outage: true, Granted: of}
		if of == 12.5 {
			limit.Error = "no memory"
		}
		text.Reset()
		writeFleet(&text, &inspect.Fleet{Rules: 1, Limits: []inspect.FleetLimit{limit}})
		assert.Contains(t, text.String(), want)
	}
	assert.Equal(t, "now all calls pass", describeState(inspect.State{Quota: &inspect.Quota{Effective: inspect.Ceiling(math.Inf(1))}}))

	text.Reset()
	writeFleet(&text, &inspect.Fleet{Rules: 2, Error: "no backend", SharesError: "timeout"})
	assert.Contains(t, text.String(), "not connected: no backend, 2 rules")
	assert.Contains(t, text.String(), "what other instances use is not known: timeout")
}

func TestLimitsOfTheFleetAreWrittenWithWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	for want, limit := range map[string]inspect.FleetLimit{
		"100 in 1s": {Limit: 100, Window: "1s"},
		"7 at once": {Limit: 7, Places: new(inspect.FleetPlaces)},
		"balance":   {Limit: 500, Balance: true},
	} {
		assert.Equal(t, want, limitOfFleet(&limit))
	}
}
