package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

const shop = `
rules:
  flow:
    - {name: cold, resource: orders, limit: 1000, warmUp: {period: 10s}}
    - {name: queue, resource: carts, limit: 5, algorithm: throttle, maxWait: 450ms}
    - {name: bucket, resource: stock, limit: 5, algorithm: tokenBucket, maxWait: 10s, warmUp: {period: 1500ms}}
    - {name: few, resource: stock, limit: 2, origin: mobile}
    - {name: parcels, match: "parcel:*", perResource: false, limit: 3}
cases:
`

// run returns the failures of the one case that the text is, a line each.
func run(t *testing.T, text string) string {
	t.Helper()
	suite, err := scenario.ParseSuite("shop_test.yaml", []byte(shop+"- name: it\n"+text))
	require.NoError(t, err)
	failures, err := suite.Cases[0].Run(t.Context(), suite.Rules)
	require.NoError(t, err)
	var lines []string
	for _, f := range failures {
		field := f.Field
		if f.Calls != "" {
			field += " of " + f.Calls
		}
		lines = append(lines, fmt.Sprintf("%d:%d %s:%s %s", f.Line, f.Column, f.Resource, field, f.Message))
		for _, d := range f.Differences {
			lines = append(lines, fmt.Sprintf("  %s: got %s, want %s", d.Where, d.Got, d.Want))
		}
		if f.Got != "" {
			lines = append(lines, "  got "+f.Got)
		}
	}
	return strings.Join(lines, "\n")
}

func TestCasesThatHold(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"warm-up":          "  load: orders 2000/s for 20s\n  expect: {passed: 333 348 366 387 412 442 479 528 594 692 856 1000… ±2, offered: 2000x20, ceiling: 333.3 _…, blockedBy: cold}",
		"waits":            "  load: stock at 0s x8\n  expect: {waits: 0 0.547 987ms _ …, maxWait: 1..3}",
		"throttle":         "  load: carts at 0 x10\n  expect: {waits: 0 200ms 400ms, total: {passed: 3, blocked: 7, waited: 2}, blockedBy: {queue: 7}}",
		"duration":         "  load: carts 1/s\n  duration: 3\n  expect: {passed: 1x3, ceiling: 5x3}",
		"resources":        "  load: [carts 1/s for 2s, orders 1/s for 1s, free 1/s for 1s]\n  expect: [{resource: carts, passed: 1 1}, {resource: orders, passed: 1 0}, {passed: 3 1, ceiling: 5 5}, {resource: free, ceiling: none none}]",
		"origins":          "  load: [stock at 0 x5 origin=mobile]\n  expect: {blockedBy: [few], total: {blocked: 3}}",
		"shared":           "  load: [\"parcel:a at 0 x3\", \"parcel:b at 0.5\"]\n  expect: {passed: 3, blockedBy: {parcels: 1}}",
		"the long form":    "  load: {streams: [{resource: carts, times: [0, 0]}], seed: 5}\n  expect: {waits: [0, 0.2]}",
		"nobody refuses":   "  load: carts at 0\n  expect: {blockedBy: {queue: 0}}",
		"ends of calls":    "  load: free 10/s for 2s serviceTime=350ms fails=0.5\n  expect: {completed: 7 10, failed: 3 5, good: 4 5, inFlight: 4 4, rtP50: 350ms 350ms, rtP99: 0.35x2, total: {completed: 17, failed: 8, good: 9}, states: []}",
		"nothing ends":     "  load: free at 0 serviceTime=10\n  duration: 2\n  expect: {rtP50: none x2, completed: 0x2, inFlight: 1x2}",
		"one of several":   "  load: [free at 0 serviceTime=10ms, orders at 0 x2 serviceTime=20ms]\n  expect: [{resource: orders, rtP99: 20ms, inFlight: 2}, {completed: 3}]",
		"instances":        "  load: stock at 0 x8 origin=mobile\n  instances: 4\n  expect: {passed: 8}",
		"a poisson stream": "  load: free 50/s poisson for 10s\n  seed: 3\n  expect: {total: {offered: 400..600}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, run(t, text))
		})
	}
}

func TestFailedCasesShowTheDifferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{
			"numbers", "  load: carts 1/s for 4s\n  expect: {passed: 1 2 1 3±1}",
			"12:20 :passed is not as expected in 2 of 4\n  second 1: got 1, want 2\n  second 3: got 1, want 3 ±1\n  got 1x4",
		},
		{
			"too few", "  load: carts 1/s for 4s\n  expect: {resource: carts, passed: 1 1}",
			"12:37 carts:passed has 4 numbers where 2 are expected, one for each second: end the sequence with … to hold its last number, or with _… to leave the rest open\n  got 1x4",
		},
		{
			"too many", "  load: carts 1/s for 1s\n  expect: {passed: 1 1}",
			"12:20 :passed has 1 of the 2 numbers expected: there is one for each second\n  got 1",
		},
		{
			"totals and waits", "  load: carts at 0 x3\n  expect: {total: {passed: 5..}, waits: 0 100ms 400ms, maxWait: 0}",
			"12:28 :total.passed is not as expected\n  : got 3, want 5..\n" +
				"12:41 :waits is not as expected in 1 of 3\n  pass 1: got 200ms, want 100ms\n  got 0s 200ms 400ms\n" +
				"12:65 :maxWait is not as expected\n  : got 400ms, want 0",
		},
		{
			"who refuses", "  load: [carts at 0 x5, stock at 0 x3 origin=mobile]\n  expect: [{blockedBy: {queue: 1, few: 1}}, {resource: carts, blockedBy: qeue}]",
			"12:24 :blockedBy is not as expected\n  by \"queue\": got 2, want 1\n" +
				"12:74 carts:blockedBy is not as expected\n  no rule is called \"qeue\": did you mean \"queue\"?: got 0, want 1..\n  by \"queue\": got 2, want 0",
		},
		{
			"response times", "  load: free at 0 serviceTime=10ms\n  duration: 2\n  expect: {rtP50: 11ms 11ms}",
			"13:19 :rtP50 is not as expected in 2 of 2\n  second 0: got 10ms, want 11ms\n  second 1: got none, want 11ms\n  got 10ms none",
		},
		{
			"ceilings", "  load: free at 0\n  expect: {ceiling: 5}",
			"12:21 :ceiling is not as expected in 1 of 1\n  second 0: got none, want 5\n  got none",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, run(t, test.text))
		})
	}
}

func TestALoadThatNeverEndsIsAMistakeInItsPlace(t *testing.T) {
	t.Parallel()
	suite, err := scenario.ParseSuite("s", []byte(shop+"- {name: it, load: carts 1/s, expect: {passed: 1}}"))
	require.NoError(t, err)
	_, err = suite.Cases[0].Run(t.Context(), suite.Rules)
	assert.Contains(t, lines(t, err), "s:10:20: until is missing: without a duration, the stream would never end")
}
