package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/document"
)

func TestWindowIsReadAndWritten(t *testing.T) {
	t.Parallel()
	calls := func(key string, v document.Value) document.Value {
		return document.Value{Type: document.Mapping, Entries: []document.Entry{{Key: key, KeyType: document.Text, Value: v}}}
	}
	number := func(text string) document.Value { return document.Value{Type: document.Number, Text: text} }
	for _, test := range []struct {
		value document.Value
		fault string
	}{
		{value: document.Value{Type: document.Text, Text: "20s"}},
		{value: calls("calls", number("100"))},
		{calls("calls", number("0")), "has an entry calls that is 0: must be at least 1"},
		{calls("calls", number("2.5")), "has an entry calls that is 2.5: must be a whole number, such as 10"},
		{calls("seconds", number("1")), "is a mapping: must be a duration, or a mapping with nothing but calls, such as {calls: 100}"},
		{document.Value{Type: document.Mapping}, "is an empty mapping: must be a duration, or a mapping with nothing but calls, such as {calls: 100}"},
		{number("100"), `is 100: write a duration with a unit, such as "500ms" or "1s", or {calls: 100}`},
	} {
		draft := breaker.Kind().Draft()
		require.Equal(t, test.fault, draft.Set("window", test.value))
		if test.fault == "" {
			assert.Equal(t, test.value, draft.Get("window"))
		}
	}
	draft := breaker.Kind().Draft()
	require.Empty(t, draft.Set("window", calls("calls", number("100"))))
	assert.Equal(t, breaker.Rule{WindowCalls: 100}, draft.Value())
	require.Empty(t, draft.Set("window", document.Value{Type: document.Text, Text: "1m"}))
	assert.Equal(t, breaker.Rule{Window: time.Minute}, draft.Value())
}
