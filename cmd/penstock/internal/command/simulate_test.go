package command_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/simulate"
)

// peak has rules and a load that the tests simulate.
func peak(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"rules/orders.yaml": "flow:\n- {resource: orders, limit: 1000, warmUp: {period: 10s}}\n",
		"rules/carts.yaml":  "flow:\n- {name: queue, resource: carts, limit: 5, algorithm: throttle, maxWait: 300ms}\n",
		"load.yaml":         "streams:\n- {resource: orders, rate: 2000, until: 20s}\n",
		"burst.yaml":        "streams:\n- {resource: carts, times: [0.5, 0.5, 0.5]}\n- {resource: free, times: [1.25]}\n",
		"endless.yaml":      "streams:\n- {resource: carts, rate: 2}\n",
		"bad.yaml":          "streams:\n- {resource: carts, rate: -2, untl: 3}\n",
		"broken/a.yaml":     "flow:\n- {resource: a, limt: 5}\n",
	})
}

func TestSimulateForMachinesIsAsPromised(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "burst.yaml"), "--events", "--output", "json")
	assert.Zero(t, got.code, got.err)
	assert.JSONEq(t, `{
		"seconds": [
			{"second": 0, "resource": "carts", "offered": 3, "passed": 2, "blocked": 1, "waited": 1, "ceiling": 5,
				"completed": 2, "failed": 0, "good": 2, "inFlight": 0, "rtP50": 0, "rtP99": 0},
			{"second": 0, "resource": "free", "offered": 0, "passed": 0, "blocked": 0, "waited": 0, "ceiling": null,
				"completed": 0, "failed": 0, "good": 0, "inFlight": 0, "rtP50": null, "rtP99": null},
			{"second": 1, "resource": "carts", "offered": 0, "passed": 0, "blocked": 0, "waited": 0, "ceiling": 5,
				"completed": 0, "failed": 0, "good": 0, "inFlight": 0, "rtP50": null, "rtP99": null},
			{"second": 1, "resource": "free", "offered": 1, "passed": 1, "blocked": 0, "waited": 0, "ceiling": null,
				"completed": 1, "failed": 0, "good": 1, "inFlight": 0, "rtP50": 0, "rtP99": 0}
		],
		"events": [
			{"t": 0.5, "resource": "carts", "outcome": "pass", "wait": 0, "rule": "", "kind": "",
				"end": 0.5, "failed": false, "value": null, "priority": "normal"},
			{"t": 0.5, "resource": "carts", "outcome": "pass", "wait": 0.2, "rule": "", "kind": "",
				"end": 0.7, "failed": false, "value": null, "priority": "normal"},
			{"t": 0.5, "resource": "carts", "outcome": "block", "wait": 0, "rule": "queue", "kind": "flow",
				"end": null, "failed": false, "value": null, "priority": "normal"},
			{"t": 1.25, "resource": "free", "outcome": "pass", "wait": 0, "rule": "", "kind": "",
				"end": 1.25, "failed": false, "value": null, "priority": "normal"}
		],
		"states": [],
		"limits": []
	}`, got.out)
	assert.Empty(t, got.err)
}

func TestSimulateFollowsTheWarmUp(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules/orders.yaml"), "--load", filepath.Join(directory, "load.yaml"), "-o", "json")
	var result simulate.Result
	require.NoError(t, json.Unmarshal([]byte(got.out), &result))
	want := []int{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	assert.InDeltaSlice(t, want, result.Passed("orders"), 2)
	assert.Contains(t, got.out, `"events":[]`)
}

func TestSimulateDrawsForTheTerminal(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	arguments := []string{"simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "burst.yaml")}
	golden(t, "simulate.txt", user{}.run(t, append(arguments, "--events", "--duration", "4s")...).out, directory)
	terminal := user{terminal: true}
	assert.Contains(t, terminal.run(t, arguments...).out, "\x1b[34m█")
	terminal.env = map[string]string{"NO_COLOR": "1"}
	assert.NotContains(t, terminal.run(t, arguments...).out, "\x1b")
}

func TestSimulateWritesAPicture(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	file := filepath.Join(directory, "peak.svg")
	arguments := []string{"simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "load.yaml"), "--output", "svg"}
	printed := user{}.run(t, arguments...)
	require.NoError(t, xml.Unmarshal([]byte(printed.out), new(struct{})))
	assert.Contains(t, printed.out, "load.yaml under ")
	assert.Equal(t, answer{}, user{}.run(t, append(arguments, "--file", file)...))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, printed.out, string(written))
}

func TestSimulateTakesRulesAndLoadsFromAnywhere(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	orders, carts := filepath.Join(directory, "rules/orders.yaml"), filepath.Join(directory, "rules/carts.yaml")
	both := user{types: "streams: [orders 1/s for 1s, carts 1/s for 1s]"}
	for _, arguments := range [][]string{
		{"--rules", orders, "--rules", carts, "--load", "-"},
		{"--rules", orders, carts, "--load", "-"},
		{"--load", "-", "--rules", filepath.Join(directory, "rules")},
	} {
		got := both.run(t, append([]string{"simulate", "-o", "json"}, arguments...)...)
		assert.Zero(t, got.code, got.err)
		assert.NotContains(t, got.out, "null", "%v: both have a ceiling", arguments)
	}
}

func TestSimulateTakesRulesFromStandardInputAndDocumentsOfOneName(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{
		"one/limits.yaml": "flow: [{resource: a, limit: 1}]\n",
		"two/limits.yaml": "flow: [{resource: b, limit: 2}]\n",
		"load.yaml":       "streams: [a at 0, b at 0, c at 0]\n",
	})
	piped := user{types: "flow: [{resource: c, limit: 3}]"}
	got := piped.run(t, "simulate", "--rules", filepath.Join(directory, "one"), filepath.Join(directory, "two"), "-",
		"--load", filepath.Join(directory, "load.yaml"), "-o", "json")
	assert.Zero(t, got.code, got.err)
	for _, ceiling := range []string{`"ceiling":1}`, `"ceiling":2}`, `"ceiling":3}`} {
		assert.Contains(t, got.out, ceiling)
	}
}

func TestSimulateTakesADurationAsLoadsHaveIt(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	for _, duration := range []string{"3", "3s", "3000ms", "2.5"} {
		got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"),
			"--load", filepath.Join(directory, "endless.yaml"), "-o", "json", "-d", duration)
		var result simulate.Result
		require.NoError(t, json.Unmarshal([]byte(got.out), &result), got.err)
		assert.Len(t, result.Seconds, 3)
	}
}

func TestSimulateFitsTheColumnsThatTheUserNames(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	narrow := user{env: map[string]string{"COLUMNS": "40"}}
	got := narrow.run(t, "simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "load.yaml"))
	for line := range strings.SplitSeq(got.out, "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 40, line)
	}
	assert.Contains(t, got.out, "most passed/s")
}

func TestSimulateShowsMistakesWithTheirPlaces(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	for _, test := range []struct {
		rules, load string
		code        int
		want        []string
	}{
		{"broken", "load.yaml", command.ExitNo, []string{"DIR/broken/a.yaml:2:17: flow rule \"a\": unknown field \"limt\": did you mean \"limit\"?", "1 mistake"}},
		{"rules", "bad.yaml", command.ExitNo, []string{
			"DIR/bad.yaml:2:27: rate is -2: must be more than 0", "2 | - {resource: carts, rate: -2, untl: 3}",
			"DIR/bad.yaml:2:31: unknown field \"untl\": did you mean \"until\"?", "penstock: 2 mistakes in DIR/bad.yaml",
		}},
		{"rules", "endless.yaml", command.ExitNo, []string{"DIR/endless.yaml:2:3: until is missing: without a duration, the stream would never end"}},
		{"rules", "none.yaml", command.ExitFailed, []string{"DIR/none.yaml: no such file"}},
		{"rules", "rules", command.ExitFailed, []string{"DIR/rules is a directory: name the file with the load"}},
		{"none", "load.yaml", command.ExitFailed, []string{"DIR/none: no such file"}},
	} {
		got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, test.rules), "--load", filepath.Join(directory, test.load))
		assert.Equal(t, test.code, got.code, got.err)
		assert.Empty(t, got.out)
		for _, want := range test.want {
			assert.Contains(t, strings.ReplaceAll(got.err, directory, "DIR"), want)
		}
	}
}

func TestSimulateNeedsAValidCommandLine(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		"name the rules: --rules PATH":                                {"--load", "-"},
		"name the load: --load FILE":                                  {"--rules", "x"},
		"--duration 0s: must be longer than 0s":                       {"--rules", "x", "--load", "-", "--duration", "0s"},
		"--duration 1081h0m0s: must be longer than 0s and at most":    {"--rules", "x", "--load", "-", "--duration", "1081h"},
		"--instances 0: must be from 1 to 1000":                       {"--rules", "x", "--load", "-", "--instances", "0"},
		"--instances 1001: must be from 1 to 1000":                    {"--rules", "x", "--load", "-", "--instances", "1001"},
		"must be text, json or svg":                                   {"--rules", "x", "--load", "-", "--output", "png"},
		"must be in seconds, such as 20, or have a unit, such as 500": {"--rules", "x", "--load", "-", "--duration", "soon"},
		"standard input holds the rules or the load, not both":        {"--rules", "-", "--load", "-"},
		"a picture has no room for --events: write them as text or ":  {"--rules", "x", "--load", "-", "--output", "svg", "--events"},
	} {
		got := user{}.run(t, append([]string{"simulate"}, arguments...)...)
		assert.Equal(t, command.ExitUsage, got.code)
		assert.Contains(t, got.err, want)
	}
}

func TestSimulateSharesTheLoadAmongInstances(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	arguments := []string{
		"simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "burst.yaml"), "-o", "json", "--events",
	}
	got := user{}.run(t, append(arguments, "--instances", "3")...)
	var result simulate.Result
	require.NoError(t, json.Unmarshal([]byte(got.out), &result), got.err)
	assert.Equal(t, []int{3, 0}, result.Passed("carts"), "each instance has a queue")
	var instances []int
	for _, e := range result.Events[:3] {
		instances = append(instances, e.Instance)
	}
	assert.ElementsMatch(t, []int{1, 2, 3}, instances)
	assert.Equal(t, user{}.run(t, arguments...), user{}.run(t, append(arguments, "--instances", "1")...))
}

func TestSimulateCannotWrite(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	got := user{}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "burst.yaml"), "--file", filepath.Join(directory, "no/where"))
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "no such file or directory")
}

func TestSimulateCanBeInterrupted(t *testing.T) {
	t.Parallel()
	directory := peak(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, notes strings.Builder
	code := command.Run(ctx, command.Env{Out: &out, Err: &notes, Getenv: func(string) string { return "" }},
		[]string{"simulate", "--rules", filepath.Join(directory, "rules"), "--load", filepath.Join(directory, "load.yaml")})
	assert.Equal(t, command.ExitFailed, code)
	assert.Contains(t, notes.String(), "penstock: interrupted")
	assert.Empty(t, out.String())
}

func TestTheLoadInTheHelpOfSimulateIsValid(t *testing.T) {
	t.Parallel()
	help := user{}.run(t, "simulate", "--help").out
	_, after, found := strings.Cut(help, "The load is YAML:\n")
	require.True(t, found)
	load, _, found := strings.Cut(after, "\nTimes are in seconds")
	require.True(t, found)
	directory := peak(t)
	got := user{types: load}.run(t, "simulate", "--rules", filepath.Join(directory, "rules"), "--load", "-", "-o", "json", "--duration", "1s")
	assert.Zero(t, got.code, got.err)
}
