package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/simulate"
)

// passing returns how many of 50 calls at one instant pass the converted rule.
func passing(t *testing.T, fields string, call simulate.Stream) (passed int) {
	t.Helper()
	set, _ := convertRule(t, fields)
	require.Equal(t, 1, set.Len())
	call.Resource, call.Times, call.ServiceTime = "r", make([]time.Duration, 50), time.Second
	result, err := simulate.Run(t.Context(), set, simulate.Load{Streams: []simulate.Stream{call}}, simulate.Options{})
	require.NoError(t, err)
	return result.Passed("r")[0]
}

func with(name string, value any) simulate.Stream {
	return simulate.Stream{Attrs: []simulate.Attr{{Name: name, Values: []any{value}}}}
}

func TestAuthorityRulesDecideAsInSentinel(t *testing.T) {
	const white, black = `"limitApp": "shop,pay*", "strategy": 0`, `"limitApp": "shop,pay*", "strategy": 1`
	for origin, want := range map[string][2]int{"shop": {50, 0}, "pay*": {50, 0}, "pay-x": {0, 50}, "": {50, 50}} {
		assert.Equal(t, want[0], passing(t, white, simulate.Stream{Origin: origin}), "white list, %q", origin)
		assert.Equal(t, want[1], passing(t, black, simulate.Stream{Origin: origin}), "black list, %q", origin)
	}
}

func TestRulesForHotParametersDecideAsInSentinel(t *testing.T) {
	const fields = `"metricType": 1, "threshold": 10, "durationInSec": 1, "paramIndex": 1, "specificItems": [` +
		`{"valKind": 0, "valStr": "7", "threshold": 20}, {"valKind": 1, "valStr": "a*", "threshold": 3}, {"valKind": 2, "valStr": "true", "threshold": 0}]`
	for value, want := range map[any]int{"b": 10, "7": 10, 7: 20, "a*": 3, "ab": 10, true: 0, false: 10, "true": 10, 8: 10} {
		assert.Equal(t, want, passing(t, fields, with("arg1", value)), "%T %v", value, value)
	}
	assert.Equal(t, 50, passing(t, fields, with("arg0", "b")), "a call without the argument")
}

func TestGatewayRulesDecideAsInSentinel(t *testing.T) {
	item := func(strategy, pattern string) string {
		return `"intervalSec": 1, "paramItem": {"parseStrategy": 2, "fieldName": "T", "matchStrategy": ` + strategy + `, "pattern": "` + pattern + `"}`
	}
	for fields, values := range map[string]map[string]bool{ // whether a value is limited
		item("0", "a.c"): {"a.c": true, "abc": false, "a.cd": false},
		item("1", "a*"):  {"a*": true, "a*b": true, "ab": false},
		item("2", "a.c"): {"a.c": true, "abc": true, "abcd": false, "xabc": false},
		item("3", "a?c"): {"xa?cx": true, "a?c": true, "abc": false},
	} {
		for value, limited := range values {
			want := 50
			if limited {
				want = 10
			}
			for _, how := range []string{`"count": 10`, `"count": 10, "grade": 0`} {
				assert.Equal(t, want, passing(t, fields+", "+how, with("header:T", value)), "%s %s, %s", fields, how, value)
			}
			if limited {
				want = 6 // one every 100 ms
			}
			throttle := passing(t, fields+`, "count": 10, "controlBehavior": 2`, with("header:T", value))
			assert.Equal(t, want, throttle, "%s throttled, %s", fields, value)
		}
	}
}
