package access_test

import (
	"testing"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/rule"
)

// Module bench measures lists of ten million entries.
func BenchmarkAcquire(b *testing.B) {
	addresses := access.Rule{Resource: "r", Deny: texts("10.0.0.0/8", "2001:db8::/32"), List: "l"}
	users := access.Rule{Resource: "r", Attribute: "user", Deny: texts("banned", "test-*"), List: "l"}
	for _, c := range []struct {
		name  string
		rule  access.Rule
		value string
	}{
		{"IPv4Passes", addresses, "192.0.2.77"},
		{"IPv4Refused", addresses, "10.1.2.3"},
		{"IPv6Passes", addresses, "2001:db9:1:2:3:4:5:6"},
		{"IPv6Refused", addresses, "2001:db8:1:2:3:4:5:6"},
		{"TextPasses", users, "alice"},
		{"TextRefused", users, "banned"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newService(b, c.rule)
			s.set("l", "172.16.0.0/12", "2001:db7::/48")
			call := rule.Call{Now: epoch, Tokens: 1, Attribute: rule.String(c.value)}
			b.ReportAllocs()
			for b.Loop() {
				s.limiter.Acquire(call)
			}
		})
	}
}
