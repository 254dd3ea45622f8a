package command_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/simulate"
)

// dependency has the rules and the load of a dependency that breaks and heals: from 5 s
// to 12 s all calls fail. Calls end 100 ms after they have come.
//
// At 5.5 s five of the ten calls that ended in the last second have failed. The first
// call after 2 s is a probe, which fails, and so is that after 4 s more. The two probes
// after 8 s more end well.
func dependency(t *testing.T) string {
	t.Helper()
	const load = "{streams: [{resource: pay, rate: 10, until: 21s, serviceTime: 100ms, phases: [{until: 5s}, {until: 12s, fails: 1}]}]}"
	return tree(t, map[string]string{
		"rules/pay.yaml": `breaker:
- {name: pay, resource: pay, threshold: 0.5, minCalls: 10, window: 1s, openFor: 2s, maxOpenFor: 8s, probes: 2}
isolation:
- {name: pay, resource: pay, limit: 1, maxWait: 50ms}
`,
		"load.yaml": load + "\n",
		"pay_test.yaml": `rules: rules
cases:
- name: the breaker opens, doubles its time and closes
  load: ` + load + `
  expect:
    failed: 0x5 5 0 1 0x3 1 0x9
    inFlight: 1 1 1 1 1 1 0 1 0 0 0 1 0 0 0 0 0 0 0 1 1
    states:
    - {at: 5.5s, rule: pay, to: open}
    - {at: 7.5s, rule: pay, to: halfOpen}
    - {at: 7.6s, rule: pay, to: open}
    - {at: 11.6s, rule: pay, to: halfOpen}
    - {at: 11.7s, rule: pay, to: open}
    - {at: 19.7s, rule: pay, to: halfOpen}
    - {at: 19.9s, rule: pay, to: closed}
`,
		"wrong_test.yaml": `rules: rules
cases:
- name: later
  load: ` + load + `
  expect: {states: [{at: 6s, rule: pay, to: open}, …]}
`,
	})
}

func TestStatesOfABreakerAreExpected(t *testing.T) {
	t.Parallel()
	directory := dependency(t)
	got := user{}.run(t, "test", filepath.Join(directory, "pay_test.yaml"))
	assert.Zero(t, got.code, got.out+got.err)
	got = user{}.run(t, "test", filepath.Join(directory, "wrong_test.yaml"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.out, "change 1: got 5.5s pay open, want 6s pay open")
}

func TestSimulateShowsBreakersAndCallsInFlight(t *testing.T) {
	t.Parallel()
	directory := dependency(t)
	simulated := func(output string) string {
		got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"),
			"--load", filepath.Join(directory, "load.yaml"), "--output", output)
		require.Zero(t, got.code, got.err)
		return got.out
	}
	var result simulate.Result
	require.NoError(t, json.Unmarshal([]byte(simulated("json")), &result))
	require.Len(t, result.States, 7)
	assert.Equal(t, simulate.StateChange{T: 5.5, Resource: "pay", Rule: "pay", Kind: "breaker", From: "closed", To: "open"}, result.States[0])
	for _, text := range []string{"calls in flight, up to 1", "pay (breaker)", "▓ open"} {
		assert.Contains(t, simulated("text"), text)
	}
	svg := simulated("svg")
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	assert.Contains(t, svg, "pay (breaker)")
	assert.Contains(t, svg, "halfOpen")
}
