package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

const faultDocument = `
fault:
  - name: slow
    resource: pay
    percent: 0.5
    delay: 200ms
    abort: {http: 503, grpc: ABORTED}
    until: 2026-12-01T01:00:00.5+01:00
  - {match: "search:*", perResource: false, percent: 100, abort: {grpc: NOT_FOUND}, until: "2030-01-01T00:00:00Z", origin: mobile}
`

func TestParseReadsFaults(t *testing.T) {
	set, err := rules.Parse("", []byte(faultDocument))
	require.NoError(t, err)
	assert.Equal(t, []fault.Rule{{
		Name: "slow", Resource: "pay", Percent: 0.5, Delay: 200 * time.Millisecond,
		Abort: fault.Abort{HTTP: 503, GRPC: "ABORTED"}, Until: time.Date(2026, 12, 1, 0, 0, 0, 500_000_000, time.UTC),
	}, {
		Name: "search:*", Match: "search:*", Shared: true, Percent: 100,
		Abort: fault.Abort{GRPC: "NOT_FOUND"}, Until: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Origin: "mobile",
	}}, set.Fault)
}

func TestFaultsAreReadBackAsTheyAreWritten(t *testing.T) {
	set, err := rules.Parse("", []byte(faultDocument))
	require.NoError(t, err)
	document, err := set.YAML()
	require.NoError(t, err)
	again, err := rules.Parse("", document)
	require.NoError(t, err, string(document))
	assert.Equal(t, set.Fault, again.Fault)
	assert.Empty(t, rules.Diff(set, again))
	assert.Contains(t, string(document), "until: ")
}

func TestParseSaysWhatIsWrongWithAFault(t *testing.T) {
	const advice = "write a time with its offset from UTC, such as 2030-06-01T00:00:00Z"
	for _, c := range []struct{ line, want string }{
		{"until: tomorrow", `until is "tomorrow": ` + advice},
		{"until: 2026-12-01", `until is "2026-12-01": ` + advice},
		{"until: 2026-12-01T00:00:00", `until is "2026-12-01T00:00:00": ` + advice},
		{"until: 2026-12-01 00:00:00Z", `until is "2026-12-01 00:00:00Z": ` + advice},
		{"until: 2026-13-01T00:00:00Z", `until is "2026-13-01T00:00:00Z": ` + advice},
		{"until: 1796083200", "until is 1796083200: " + advice},
		{"until: [a]", "until is a list: " + advice},
		{"until: 1969-12-31T23:59:59Z", `until is "1969-12-31T23:59:59Z": must be from 1970 to 2262`},
		{"until: 2300-01-01T00:00:00Z", `until is "2300-01-01T00:00:00Z": must be from 1970 to 2262`},
		{"# no end", "until is missing: write when the rule ends, such as 2030-06-01T00:00:00Z; nothing is injected from then on"},
		{"until: 2030-06-01T00:00:00Z\n    delay: 0s", `delay is "0s": leave it out, or delay calls by at least 1ms`},
		{"until: 2030-06-01T00:00:00Z\n    abort: {http: 200}", "abort.http is 200: must be the status of an error, from 400 to 599"},
		{"until: 2030-06-01T00:00:00Z\n    abort: {http: 0}", "abort.http is 0: must be the status of an error, from 400 to 599"},
		{"until: 2030-06-01T00:00:00Z\n    abort: {grpc: OK}", `abort.grpc is "OK": must be "CANCELLED"`},
		{"until: 2030-06-01T00:00:00Z\n    abort: {grpc: unavailable}", `abort.grpc is "unavailable": did you mean "UNAVAILABLE"?`},
		{"until: 2030-06-01T00:00:00Z\n    abort: {status: 503}", `unknown field "abort.status"`},
	} {
		text := fmt.Sprintf("fault:\n  - resource: pay\n    percent: 5\n    %s\n", c.line)
		_, err := rules.Parse("", []byte(text))
		require.ErrorContains(t, err, c.want, text)
	}
	_, err := rules.Parse("", []byte("fault: [{resource: pay, until: 2030-06-01T00:00:00Z}]"))
	require.ErrorContains(t, err, "percent is missing: write how many of 100 calls the fault is for, such as 5")
	require.ErrorContains(t, err, "delay is missing: write how long calls are delayed, or refuse them with abort")
}
