package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

func TestFirstCallersThatContainTheAddressCount(t *testing.T) {
	t.Parallel()
	trusting := clientip.New(clientip.Options{PriorityCallers: []priority.Callers{
		{From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Max: rule.PriorityCritical},
		{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:192.0.2.0/120"), {}}, Max: rule.PriorityLow},
		{From: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}},
	}})
	chosen := func(r *clientip.Resolver, address string) (rule.Priority, bool) {
		return r.Priority([]string{"critical"}, nil, func() clientip.Address { return clientip.Parse(address) })
	}
	for address, want := range map[string]rule.Priority{
		"10.1.2.3": rule.PriorityCritical, "10.2.2.3": rule.PriorityLow, "192.0.2.7": rule.PriorityLow,
		"::ffff:10.1.2.3": rule.PriorityCritical, "2001:db8::1": rule.PriorityNormal,
	} {
		most, trusted := chosen(trusting, address)
		assert.True(t, trusted, address)
		assert.Equal(t, want, most, address)
	}
	for _, address := range []string{"11.0.0.1", "192.0.3.1", "2001:db9::1", "", "unknown"} {
		_, trusted := chosen(trusting, address)
		assert.False(t, trusted, address)
	}
	_, trusted := chosen(clientip.New(clientip.Options{}), "127.0.0.1")
	assert.False(t, trusted)
}
