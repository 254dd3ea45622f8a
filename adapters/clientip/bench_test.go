package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/penstock-go/penstock/adapters/clientip"
)

// BenchmarkClient shows what it costs to find the client of a request and its text, beside
// parsing the address of the peer alone.
func BenchmarkClient(b *testing.B) {
	r := clientip.New(clientip.Options{TrustedProxies: proxies()})
	b.Run("netip.ParseAddrPort", func(b *testing.B) {
		for b.Loop() {
			_, _ = netip.ParseAddrPort("203.0.113.1:80")
		}
	})
	for _, bench := range []struct{ name, peer, field string }{
		{"peer", "203.0.113.1:80", ""},
		{"peer with IPv6", "[2001:db8:1:2:3:4:5:6]:80", ""},
		{"one proxy", "10.0.0.1:80", "203.0.113.1"},
		{"three proxies", "10.0.0.1:80", "1.1.1.1, 203.0.113.1, 10.0.0.3, 192.168.0.1"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			lines := []string{bench.field}
			b.ReportAllocs()
			for b.Loop() {
				_ = r.PrefixText(r.Client(clientip.Parse(bench.peer), lines))
			}
		})
	}
}
