package priority_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

func TestParseUnderstandsOnePriorityOnly(t *testing.T) {
	t.Parallel()
	for _, want := range rule.Priorities() {
		for _, text := range []string{want.String(), strings.ToUpper(want.String()), " " + want.String() + "\t"} {
			p, ok := priority.Parse([]string{text})
			assert.True(t, ok, text)
			assert.Equal(t, want, p, text)
		}
	}
	for _, values := range [][]string{
		nil,
		{""},
		{"2"},
		{"critical,low"},
		{"critical", "low"},
		{"critical", "critical"},
		{"crítical"},
		{"critical;q=1"},
		{strings.Repeat(" ", 1000) + "critical"},
	} {
		p, ok := priority.Parse(values)
		assert.False(t, ok, values)
		assert.Equal(t, rule.PriorityNormal, p)
	}
}

func TestFirstCallersThatContainTheAddressCount(t *testing.T) {
	t.Parallel()
	trust := priority.NewTrust([]priority.Callers{
		{From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Max: rule.PriorityCritical},
		{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:192.0.2.0/120"), {}}, Max: rule.PriorityLow},
		{From: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}},
	})
	for address, want := range map[string]rule.Priority{
		"10.1.2.3": rule.PriorityCritical, "10.2.2.3": rule.PriorityLow, "192.0.2.7": rule.PriorityLow,
		"::ffff:10.1.2.3": rule.PriorityCritical, "2001:db8::1": rule.PriorityNormal,
	} {
		most, trusted := trust.Of(clientip.Parse(address))
		assert.True(t, trusted, address)
		assert.Equal(t, want, most, address)
	}
	for _, address := range []string{"11.0.0.1", "192.0.3.1", "2001:db9::1", "", "unknown"} {
		_, trusted := trust.Of(clientip.Parse(address))
		assert.False(t, trusted, address)
	}
	_, trusted := priority.Trust{}.Of(clientip.Parse("127.0.0.1"))
	assert.False(t, trusted)
}
