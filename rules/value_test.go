package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestParseSaysWhatIsWrongWithAValue(t *testing.T) {
	for _, c := range []struct{ field, want string }{
		{"name: 123", `9 name is 123: must be text; put it in quotes, "123"`},
		{"name: true", `9 name is true: must be text; put it in quotes, "true"`},
		{"name: [a]", "9 name is a list: must be text"},
		{"name:", "8 name is left empty: write a value or remove the field"},
		{`name: ""`, `9 name is "": write something or leave the field out`},
		{`name: "a\nb"`, `9 name is "a\nb": it has a character U+000A, which cannot be seen; remove it`},
		{`name: "a\u2028b"`, `9 name is "a\u2028b": it has a character U+2028, which cannot be seen; remove it`},
		{`name: "a\uFFFDb"`, `9 name is "a�b": it is not UTF-8 or lost a character on its way; write it anew`},
		{"name: " + strings.Repeat("n", 1025), "9 name is 1025 bytes long: the most is 1024"},
		{"limit: abc", `10 limit is "abc": must be a number, such as 100 or 2.5`},
		{"limit: [1]", "10 limit is a list: must be a number"},
		{"limit: {}", "10 limit is an empty mapping: must be a number"},
		{"limit: null", "10 limit is left empty: write a value or remove the field"},
		{`limit: "100"`, `10 limit is "100": must be a number, such as 100 or 2.5; remove the quotes`},
		{"limit: yes", `10 limit is "yes": must be a number`},
		{"limit: true", "10 limit is true: must be a number"},
		{"limit: 1_000", `10 limit is "1_000": must be a number`},
		{"limit: 1,000", `10 limit is "1,000": must be a number`},
		{"limit: 1:30", `10 limit is "1:30": must be a number`},
		{"limit: 100/s", `10 limit is "100/s": must be a number`},
		{"limit: 0755", "10 limit is 0755: write the number without a leading zero"},
		{"limit: 0o17", "10 limit is 0o17: must be a decimal number"},
		{"limit: 0x1F", "10 limit is 0x1F: must be a decimal number"},
		{"limit: .inf", "10 limit is .inf: must be a decimal number"},
		{"limit: .NaN", "10 limit is .NaN: must be a decimal number"},
		{"limit: NaN", `10 limit is "NaN": must be a number`},
		{"limit: 1e999", "10 limit is +Inf: must be from 0"},
		{"limit: -0.5", "10 limit is -0.5: must be from 0"},
		{"limit: 99999999999999999999", "10 limit is 1e+20: must be from 0"},
		{"window: 10", `11 window is 10: write a duration with a unit, such as "500ms" or "1s"`},
		{`window: "10"`, `11 window is "10": write a duration with a unit`},
		{"window: 0", "11 window is 0: write a duration with a unit"},
		{`window: "0"`, `11 window is "0": write a duration with a unit`},
		{"window: 1y", `11 window is "1y": write a duration with a unit`},
		{"window: 1 s", `11 window is "1 s": write a duration with a unit`},
		{"window: [1s]", "11 window is a list: write a duration with a unit"},
		{"window: 0s", `11 window is "0s": leave the field out for the default, "1s"`},
		{"window: -1s", "11 window is -1s: must be from 10ms to 24h0m0s"},
		{"window: 25h", "11 window is 25h0m0s: must be from 10ms"},
		{"window: 9999999999h", `11 window is "9999999999h": write a duration`},
		{"algorithm: tokenBuckets", `14 algorithm is "tokenBuckets": did you mean "tokenBucket"?`},
		{`algorithm: ""`, `14 algorithm is "": leave the field out for the default, "slidingWindow"`},
		{"buckets: 2.5", "12 buckets is 2.5: must be a whole number"},
		{"buckets: ten", `12 buckets is "ten": must be a number`},
		{"buckets: 0", "12 buckets is 0: leave the field out for the default, 10"},
		{"buckets: 1e30", "12 buckets is 1e30: must be a whole number, at most 2147483647"},
		{"buckets: 7", "12 buckets is 7: does not part a window of 1s evenly"},
		{"strict: yes", `11 strict is "yes": must be true or false`},
		{"strict: on", `11 strict is "on": must be true or false`},
		{`strict: "true"`, `11 strict is "true": must be true or false; remove the quotes`},
		{"strict: 1", "11 strict is 1: must be true or false"},
		{"control: Reject", `12 control is "Reject": did you mean "reject"?`},
		{"maxWait: 1s", `12 maxWait has no effect on a window: remove it`},
		{"warmUp: 10s", `11 warmUp is "10s": must be a mapping with some of the fields period, coldFactor, step`},
		{"warmUp: {}", "11 warmUp is an empty mapping: must be a mapping with"},
		{"warmUp: {coldFactor: 4}", "11 warmUp.period is 0s: must be longer than 0s"},
		{"warmUp: {period: 10s, coldFactor: 1}", "37 warmUp.coldFactor is 1: must be greater than 1"},
		{"warmUp: {period: 10s, coldFactor: 0}", "37 warmUp.coldFactor is 0: leave the field out for the default, 3"},
		{"warmUp: {period: 10s, step: 2m}", "31 warmUp.step is 2m0s: must be from 10ms to 1m0s"},
		{"warmUp: {period: ten}", `20 warmUp.period is "ten": write a duration`},
		{"warmUp: {period: 10, coldFactor: 1}", "20 warmUp.period is 10: write a duration"},
		{"name: !!str n", `9 name has a tag, which is not supported: remove "!!str"`},
	} {
		document := "flow:\n- resource: orders\n  " + c.field
		if !strings.HasPrefix(c.field, "limit") {
			document += "\n  limit: 1"
		}
		t.Run(c.field, func(t *testing.T) {
			_, err := rules.Parse("", []byte(document))
			var problems rules.Problems
			require.ErrorAs(t, err, &problems)
			require.Len(t, problems, 1, "%v", err)
			p := problems[0]
			assert.Equal(t, 3, p.Line)
			assert.Truef(t, strings.HasPrefix(fmt.Sprintf("%d %s %s", p.Column, p.Field, p.Message), c.want), "got %v", p)
		})
	}
}

func TestParseReadsNumbersAsYAML12Does(t *testing.T) {
	for written, want := range map[string]float64{
		"0": 0, "-0": 0, "5": 5, "+5": 5, "5.": 5, ".5": 0.5, "2.50": 2.5, "1e3": 1000, "1E+3": 1000, "12e-1": 1.2, "0.1": 0.1, "1000000000": 1e9,
	} {
		set, err := rules.Parse("", []byte("flow: [{resource: a, limit: "+written+"}]"))
		require.NoError(t, err, written)
		assert.InDelta(t, want, set.Flow[0].Limit, 0, written)
	}
}

func TestParseReadsWholeNumbersHoweverWritten(t *testing.T) {
	for _, written := range []string{"20", "2e1", "20.0", "+20"} {
		set, err := rules.Parse("", []byte("flow: [{resource: a, limit: 1, buckets: "+written+"}]"))
		require.NoError(t, err, written)
		assert.Equal(t, 20, set.Flow[0].Buckets, written)
	}
}

func TestParseReadsDurations(t *testing.T) {
	for written, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "1.5s": 1500 * time.Millisecond, `"1m"`: time.Minute, "1h30m": 90 * time.Minute, "100000µs": 100 * time.Millisecond,
	} {
		set, err := rules.Parse("", []byte("flow: [{resource: a, limit: 1, window: "+written+"}]"))
		require.NoError(t, err, written)
		assert.Equal(t, want, set.Flow[0].Window, written)
	}
}

func TestParseTakesForTextWhatYAML12Does(t *testing.T) {
	for written, want := range map[string]string{
		"yes": "yes", "off": "off", "1_000": "1_000", "1:30": "1:30", "2001-01-01": "2001-01-01", "orders:create": "orders:create",
		`"123"`: "123", "'true'": "true", `"\u00e9"`: "é", "|-\n    a b": "a b", "NaN": "NaN", "日本": "日本",
	} {
		set, err := rules.Parse("", []byte("flow:\n- limit: 1\n  resource: "+written))
		require.NoError(t, err, written)
		assert.Equal(t, want, set.Flow[0].Resource, written)
	}
}

func TestParseAcceptsZeroWhereItIsTheDefault(t *testing.T) {
	set, err := rules.Parse("", []byte(
		"flow: [{resource: a, limit: 0, strict: false, maxWait: 0s, warmUp: {period: 0s}, overdraft: false, perResource: true, shadow: false}]"))
	require.NoError(t, err)
	assert.Equal(t, []flow.Rule{flow.Kind().WithDefaults(flow.Rule{Resource: "a"})}, set.Flow)
}
