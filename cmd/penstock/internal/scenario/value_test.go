package scenario_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

// Times are seconds, or have units, also days and weeks, which simulations of a month are written in.
func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1.5": 1500 * time.Millisecond, "500ms": 500 * time.Millisecond, "1e3": 1000 * time.Second, "-2": -2 * time.Second,
		"40d": 40 * day, "1.5d": 36 * time.Hour, "2w": 14 * day, "1d12h": 36 * time.Hour, "1w2d3h4m": 9*day + 3*time.Hour + 4*time.Minute,
		"-1d12h": -36 * time.Hour, "0d": 0,
	} {
		d, ok := scenario.ParseDuration(text)
		require.True(t, ok, text)
		assert.Equal(t, want, d, text)
	}
	for _, text := range []string{
		"", "d", "w", "1d2w", "1x", "1d-2h", "1d+2h", "+-1d", "--1d", "1e400", "1e99d", "NaN", "NaNd", "Infd", "5days", "1d5", "1 d", "1dd", "0x1d",
	} {
		_, ok := scenario.ParseDuration(text)
		assert.False(t, ok, text)
	}
}

// A load may last as long as simulations do, in days, and recharge balances meanwhile.
func TestLoadOfDaysWithRecharges(t *testing.T) {
	t.Parallel()
	load, err := scenario.ParseLoad("l", []byte(`streams: {resource: r, rate: 0.01, until: 40d}
recharges:
  - {at: 10d, rule: credit, tokens: 1000, attrs: {tenant: acme, id: "7", n: 7}}
  - {at: 31d, rule: credit, tokens: -50, resource: r, origin: shop}
`))
	require.NoError(t, err)
	assert.Equal(t, 40*24*time.Hour, load.Streams[0].Until)
	require.Len(t, load.Recharges, 2)
	assert.Equal(t, map[string]any{"tenant": "acme", "id": "7", "n": int64(7)}, load.Recharges[0].Attrs)
	assert.Equal(t, int64(-50), load.Recharges[1].Tokens)

	_, err = scenario.ParseLoad("l", []byte("streams: r 1/s for 1d\nrecharges:\n  - {at: 50d, tokens: 1.5, attrs: x}\n  - {rule: a, tokens: 0}\n  - {toknes: 5}\n  - {tokens: 5}\n"))
	for _, says := range []string{
		"l:3:10: recharges[0].at is 1200h0m0s: must be from 0s to 1080h0m0s", "tokens is 1.5: must be a whole number",
		"attrs is \"x\": must be a mapping", "recharges[3].rule is missing: name the rule whose balance it is",
		"recharges[1].tokens is missing: say how many are added", `unknown field "toknes": did you mean "tokens"?`,
	} {
		assert.ErrorContains(t, err, says)
	}
}
