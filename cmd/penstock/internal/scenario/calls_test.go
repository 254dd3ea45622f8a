package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

func TestExpectationsOfSomeCallsThatHold(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a value":             "  load: carts at 0 x4 attrs=user:u1\n  expect: {value: u1, passed: 3, waits: 0 200ms 400ms, maxWait: 400ms, blockedBy: {queue: 1}}",
		"one of two streams":  "  load: [orders 2/s for 2s attrs=user:u1, orders 3/s for 2s attrs=user:u2]\n  expect: [{value: u1, offered: 2x2}, {value: u2, passed: 3x2, total: {offered: 6}}, {passed: 5x2}]",
		"values in turn":      "  load: {streams: [{resource: orders, rate: 4, until: 3s, attrs: {user: [u1, 7, \"7\", true]}}]}\n  expect: [{value: 7, passed: 1x3}, {value: '7', total: {passed: 3}}, {value: true, passed: 1x3}, {value: [u1, 7], passed: 2x3}]",
		"each value":          "  load: {streams: [{resource: orders, rate: 4, until: 3s, attrs: {user: [u1, 7, \"7\", true]}}]}\n  expect: {each: user, passed: 1x3, total: {offered: 3, blocked: 0}}",
		"thousand values":     "  load: {streams: [{resource: orders, rate: 1000, until: 3s, attrs: {user: {count: 1000}}}]}\n  expect: [{each: user, total: {offered: 3}}, {value: user-1000, offered: 1x3}]",
		"composite":           "  load: {streams: [{resource: orders, rate: 6, until: 2s, attrs: {user: [u1, u2], tenant: [a, b, 3]}}]}\n  expect: [{attrs: {tenant: 3, user: u1}, offered: 1x2}, {attrs: {tenant: [a, b]}, offered: 4x2}, {each: [tenant, user], offered: 1x2}]",
		"each of some":        "  load: {streams: [{resource: orders, rate: 6, until: 2s, attrs: {user: [u1, u2], tenant: [a, b, 3]}}]}\n  expect: {attrs: {tenant: 3}, each: user, offered: 1x2}",
		"value and more":      "  load: {streams: [{resource: orders, rate: 6, until: 2s, attrs: {user: [u1, u2], tenant: [a, b, 3]}}]}\n  expect: {value: u2, attrs: {tenant: b}, offered: 1x2}",
		"calls without":       "  load: [orders 2/s for 2s, orders 3/s for 2s attrs=user:u2]\n  expect: {each: user, offered: 3x2}",
		"slashes in a value":  "  load: {streams: [{resource: orders, times: [0, 0], attrs: {a: [x/y, x], b: [z, y/z]}}]}\n  expect: {each: [a, b], offered: 1}",
		"of one resource":     "  load: [orders 2/s for 2s attrs=user:u1, free 3/s for 2s attrs=user:u1]\n  expect: [{resource: free, value: u1, offered: 3x2}, {value: u1, offered: 5x2}]",
		"text in a line":      "  load: 'orders 2/s for 2s attrs=user:\"7\",old:true'\n  expect: [{value: '7', offered: 2x2}, {attrs: {old: true}, offered: 2x2}]",
		"ends and flight":     "  load: [free 10/s for 2s serviceTime=350ms fails=0.5 attrs=user:u1, free 3/s for 2s attrs=user:u2]\n  expect: {resource: free, value: u1, completed: 7 10, failed: 3 5, good: 4 5, inFlight: 4 4, rtP50: 350ms 350ms, rtP99: 0.35x2, total: {completed: 17, failed: 8, good: 9}}",
		"none in flight":      "  load: free at 0, 1.5 serviceTime=1 attrs=user:u1\n  duration: 4\n  expect: {value: u1, inFlight: 1 1 1 0, rtP50: none 1 1 none, completed: 0 1 1 0}",
		"ends after the last": "  load: free at 0 serviceTime=10 attrs=user:u1\n  duration: 2\n  expect: {value: u1, rtP50: none x2, completed: 0x2, inFlight: 1x2, total: {completed: 0}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, run(t, text))
		})
	}
}

func TestFailedExpectationsOfSomeCallsSayWhose(t *testing.T) {
	t.Parallel()
	const ordersOfThree = "  load: {streams: [{resource: orders, rate: 3, until: 2s, attrs: {user: [u1, 7, \"7\"]}}]}\n"
	for _, test := range []struct{ name, text, want string }{
		{
			"a value", ordersOfThree + "  expect: {value: u1, passed: 1 2, total: {passed: 5}}",
			"12:31 :passed of u1 is not as expected in 1 of 2\n  second 1: got 1, want 2\n  got 1x2\n" +
				"12:52 :total.passed of u1 is not as expected\n  : got 2, want 5",
		},
		{
			"each value", ordersOfThree + "  expect: {each: user, passed: 1 0, total: {passed: ..2}}",
			"12:32 :passed of each user is not as expected for 3 of 3 values\n  u1, second 1: got 1, want 0\n" +
				"  7, second 1: got 1, want 0\n  \"7\", second 1: got 1, want 0",
		},
		{
			"too many numbers", ordersOfThree + "  expect: {attrs: {user: [7, '7']}, each: user, passed: 1x3}",
			"12:57 :passed of user 7, \"7\", each user of 7 has 2 of the 3 numbers expected: there is one for each second\n  got 1x2",
		},
		{
			"who refuses one value", "  load: {streams: [{resource: carts, times: [0, 0, 0, 0], attrs: {user: [u1, u2], n: [1]}}]}\n  expect: {each: [user, n], blockedBy: {queue: 1}}",
			"12:40 :blockedBy of each user, n is not as expected for 1 of 2 values\n  u1/1, by \"queue\": got 0, want 1",
		},
		{
			"no call at all", "  load: orders 1/s from 1s to 2s attrs=user:u1\n  duration: 1\n  expect: {each: user, total: {passed: 0}}",
			"13:40 :total.passed of each user is about no call: none has user",
		},
		{
			"too many to compare", "  load: {streams: [{resource: orders, rate: 5001, until: 1s, attrs: {user: {count: 5001}}}]}\n  duration: 2000\n  expect: {each: user, offered: 1 0…}",
			"13:33 :offered of each user would be 10002000 numbers, one for each second of 5001 values: at most 10000000 can be compared; write total instead",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, run(t, test.text))
		})
	}
}

func TestMistakesInWhichCallsAreMeant(t *testing.T) {
	t.Parallel()
	const load = "rules: a\ncases:\n- name: a\n  load:\n" +
		"  - {resource: a, times: [0], attrs: {user: [u1, 7, \"8\", u4, u5, u6], tenant: {count: 10}}}\n" +
		"  - {resource: b, times: [0], attrs: {tenant: [x]}}\n  - c at 0\n  expect: "
	for expect, want := range map[string]string{
		"{value: u2, passed: 0}":                  `8:19: value is u2, which no call has: user has u1, 7, "8", u4, u5 and 1 more, tenant has x`,
		"{resource: a, value: u2, passed: 0}":     `8:32: value is u2, which no call has: user has u1, 7, "8", u4, u5 and 1 more`,
		"{resource: b, value: u1, passed: 0}":     `8:32: value is u1, which no call has: tenant has x`,
		"{resource: c, value: u1, passed: 0}":     `8:32: value is u1, which no call has: the streams have no attrs`,
		"{value: 8, passed: 0}":                   `8:19: value is 8, which no call has: user has the text "8": put it in quotes`,
		"{value: '7', passed: 0}":                 `8:19: value is "7", which no call has: user has 7 without quotes`,
		"{value: [u1, [7]], passed: 0}":           `8:24: value is a list: must be a value of an attribute, or a list of values`,
		"{value: [], passed: 0}":                  `8:19: value is an empty list: write the values that are meant`,
		"{attrs: {tenant: tenant-11}, passed: 0}": `8:28: attrs.tenant is tenant-11, which no call has: tenant has tenant-1 to tenant-10, tenant has x`,
		"{attrs: {tenant: tenant-01}, passed: 0}": `8:28: attrs.tenant is tenant-01, which no call has: tenant has tenant-1 to tenant-10, tenant has x`,
		"{attrs: {tennant: x}, passed: 0}":        `8:20: unknown attribute "tennant": did you mean "tenant"?`,
		"{attrs: {}, passed: 0}":                  `8:19: attrs is a mapping: must be a mapping of names to values, such as {user: u1}`,
		"{attrs: u1, passed: 0}":                  `8:19: attrs is "u1": must be a mapping of names to values, such as {user: u1}`,
		"{each: users, passed: 0}":                `8:18: unknown attribute "users": did you mean "user"?`,
		"{each: [], passed: 0}":                   `8:18: each is an empty list: name the attribute whose values are meant`,
		"{resource: c, each: user, passed: 0}":    `8:31: the calls have no attribute "user": give the streams attrs`,
		"{value: u1, ceiling: 5, states: []}": "8:32: ceiling is not known of single values: write it without value, attrs and each\n" +
			"s:8:43: states is not known of single values: write it without value, attrs and each",
		"{value: u1, inFlight: 1}": "8:33: inFlight is that of a single resource: name it, resource: a",
	} {
		_, err := scenario.ParseSuite("s", []byte(load+expect))
		assert.Equal(t, "s:"+want, lines(t, err), expect)
	}
}

// A load that could not be read does not make a mistake of what is expected of it.
func TestValuesOfALoadWithMistakesAreNotReported(t *testing.T) {
	t.Parallel()
	_, err := scenario.ParseSuite("s", []byte("rules: a\ncases:\n- {name: a, load: 'a at 0 attrs=user', expect: {value: u1, attrs: {user: u1}, each: user, passed: 0}}"))
	assert.Equal(t, `s:3:27: attrs has "user": must be name:value, such as user:u1`, lines(t, err))
}

// What is counted from single calls is what the simulation has counted: for calls that
// all have one value, every expectation holds alike with and without it.
func TestCallsOfTheOnlyValueAreAllCalls(t *testing.T) {
	t.Parallel()
	columns := []string{"offered", "passed", "blocked", "waited", "completed", "failed", "good", "inFlight", "rtP50", "rtP99"}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.IntRange(1, 40).Draw(t, "rate")
		took := rapid.SampledFrom([]string{"0", "0.1", "0.3", "1", "1.25", "2.5"}).Draw(t, "took")
		timeout := rapid.SampledFrom([]string{"", " timeout=200ms", " timeout=1s", " timeout=1.7s"}).Draw(t, "timeout")
		shape := rapid.SampledFrom([]string{"", " poisson"}).Draw(t, "shape")
		resource := rapid.SampledFrom([]string{"orders", "carts", "stock", "free"}).Draw(t, "resource")
		load := fmt.Sprintf("%s %d/s%s for 3.5s fails=0.3 serviceTime=%s%s attrs=user:u1", resource, rate, shape, took, timeout)
		got := func(calls string) string {
			var expected strings.Builder
			for _, column := range columns {
				fmt.Fprintf(&expected, ", %s: 7777x100", column)
			}
			suite, err := scenario.ParseSuite("s", []byte(shop+
				fmt.Sprintf("- {name: it, load: '%s', duration: 5, expect: {resource: %s%s%s}}", load, resource, calls, expected.String())))
			require.NoError(t, err)
			failures, err := suite.Cases[0].Run(t.Context(), suite.Rules)
			require.NoError(t, err)
			var lines []string
			for _, f := range failures {
				lines = append(lines, f.Field+" "+f.Got)
			}
			require.Len(t, lines, len(columns))
			return strings.Join(lines, "\n")
		}
		assert.Equal(t, got(""), got(", value: u1"))
	})
}
