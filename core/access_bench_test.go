package core_test

import (
	"context"
	"testing"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func BenchmarkAccess(b *testing.B) {
	e, _ := newEngine(b)
	loadAccess(b, e, access.Rule{Resource: "r", Deny: rule.StringsOf("10.0.0.0/8", "2001:db8::/32"), List: "l"})
	setList(b, e, "l", "172.16.0.0/12", "2001:db7::/48")
	for _, c := range []struct{ name, resource, ip string }{
		{"NoRule", "free", "192.0.2.77"},
		{"IPv4Passes", "r", "192.0.2.77"},
		{"IPv4Refused", "r", "10.1.2.3"},
		{"IPv6Passes", "r", "2001:db9:1:2:3:4:5:6"},
		{"IPv6Refused", "r", "2001:db8:1:2:3:4:5:6"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				guard, _ := e.Entry(context.Background(), c.resource, core.String("ip", c.ip))
				guard.Exit()
			}
		})
	}
}
