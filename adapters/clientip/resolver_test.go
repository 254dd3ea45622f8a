package clientip_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
)

// proxies are the trusted addresses of these tests.
func proxies() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48"),
		netip.MustParsePrefix("::ffff:192.168.0.0/112"),
		{}, // the same as 192.168.0.0/16, and nothing
	}
}

func TestClientIsFoundFromTheRightThroughTrustedProxies(t *testing.T) {
	for _, test := range []struct {
		name, peer string
		lines      []string
		want       string
	}{
		{"an untrusted peer is the client", "203.0.113.1:80", []string{"10.0.0.1", "198.51.100.7"}, "203.0.113.1"},
		{"no field", "10.0.0.1:80", nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a forged address to the left", "10.0.0.1:80", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		{"a forged trusted address to the left", "10.0.0.1:80", []string{"1.1.1.1, 10.9.9.9, 198.51.100.7"}, "198.51.100.7"},
		{"a chain of proxies", "10.0.0.1:80", []string{"1.1.1.1, 198.51.100.7, 192.168.3.4, 10.0.0.2"}, "198.51.100.7"},
		{"several lines", "10.0.0.1:80", []string{"1.1.1.1", "2.2.2.2, 198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"nothing but proxies", "10.0.0.1:80", []string{"10.0.0.4, 10.0.0.3", "10.0.0.2"}, "10.0.0.4"},
		{"IPv6", "[2001:db8:ffff::1]:80", []string{"2001:db8::7"}, "2001:db8::7"},
		{"IPv6 in another form", "10.0.0.1:80", []string{"2001:0DB8:0:0::7"}, "2001:db8::7"},
		{"IPv6 in brackets", "10.0.0.1:80", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"ports", "10.0.0.1:80", []string{"198.51.100.7:4711 ,\t[2001:db8:ffff::2]:443"}, "198.51.100.7"},
		{"zone", "[fe80::1%eth0]:80", nil, "fe80::1"},
		{"IPv4-mapped peer", "[::ffff:10.0.0.1]:80", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"text at the end", "10.0.0.1:80", []string{"198.51.100.7, unknown"}, "10.0.0.1"},
		{"text behind a proxy", "10.0.0.1:80", []string{"1.1.1.1, nonsense, 10.0.0.2"}, "10.0.0.2"},
		{"nothing between commas", "10.0.0.1:80", []string{"1.1.1.1,, 10.0.0.2"}, "10.0.0.2"},
		{"an empty line", "10.0.0.1:80", []string{"1.1.1.1", ""}, "10.0.0.1"},
		{"an IPv4 address with leading zeros", "10.0.0.1:80", []string{"198.051.100.007"}, "10.0.0.1"},
		{"a port that is none", "10.0.0.1:80", []string{"198.51.100.7:http"}, "10.0.0.1"},
		{"a port that is too long", "10.0.0.1:80", []string{"198.51.100.7:123456"}, "10.0.0.1"},
		{"an open bracket", "10.0.0.1:80", []string{"[2001:db8::7"}, "10.0.0.1"},
		{"IPv4 in brackets", "10.0.0.1:80", []string{"[198.51.100.7]:80"}, "10.0.0.1"},
		{"IPv4 with a zone", "10.0.0.1:80", []string{"198.51.100.7%eth0"}, "10.0.0.1"},
		{"an empty zone", "10.0.0.1:80", []string{"fe80::1%"}, "10.0.0.1"},
		{"a long text", "10.0.0.1:80", []string{strings.Repeat("1", 1<<20)}, "10.0.0.1"},
		{"a peer without port", "10.0.0.1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"an unknown peer", "", []string{"198.51.100.7"}, clientip.Unknown},
		{"a peer that is a path", "/run/shop.sock", []string{"198.51.100.7"}, clientip.Unknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := clientip.New(clientip.Options{TrustedProxies: proxies()})
			assert.Equal(t, test.want, r.Text(r.Client(clientip.Parse(test.peer), test.lines)))
		})
	}
}

func TestClientIsFoundInForwarded(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a token", []string{"for=198.51.100.7"}, "198.51.100.7"},
		{"any case", []string{"FOR=198.51.100.7"}, "198.51.100.7"},
		{"other parameters", []string{`by=10.0.0.1; proto=http;for=198.51.100.7 ;host="a,b;for=1.1.1.1"`}, "198.51.100.7"},
		{"quoted IPv6 with a port", []string{`for="[2001:db8::7]:443"`}, "2001:db8::7"},
		{"quoted IPv4 with a port", []string{`for="198.51.100.7:443"`}, "198.51.100.7"},
		{"an obfuscated port", []string{`for="198.51.100.7:_gazonk"`}, "198.51.100.7"},
		{"IPv6 without the quotes that it needs", []string{"for=[2001:db8::7]:443"}, "2001:db8::7"},
		{"a chain", []string{"for=1.1.1.1, for=198.51.100.7", `for="[2001:db8:ffff::1]", for=10.0.0.2`}, "198.51.100.7"},
		{"an unbalanced quote of a client", []string{`for="1.1.1.1, for=198.51.100.7`}, "198.51.100.7"},
		{"an escaped quote of a client", []string{`for="1.1.1.1\", for=198.51.100.7;host="x"`}, "198.51.100.7"},
		{"an escaped quote of a proxy", []string{`for=1.1.1.1, for=198.51.100.7;host="\",for=2.2.2.2;x=\\\"y\\"`}, "198.51.100.7"},
		{"unknown", []string{"for=1.1.1.1, for=unknown"}, "10.0.0.1"},
		{"obfuscated", []string{"for=1.1.1.1, for=_hidden, for=10.0.0.2"}, "10.0.0.2"},
		{"no such parameter", []string{"for=1.1.1.1, proto=https"}, "10.0.0.1"},
		{"the parameter twice", []string{"for=1.1.1.1;for=198.51.100.7"}, "10.0.0.1"},
		{"no value", []string{"for"}, "10.0.0.1"},
		{"an empty value", []string{"for=;for=198.51.100.7"}, "10.0.0.1"},
		{"an open quote", []string{`for="198.51.100.7`}, "10.0.0.1"},
		{"a lone quote", []string{`for="`}, "10.0.0.1"},
		{"an open quote elsewhere", []string{`for=198.51.100.7;host="x`}, "10.0.0.1"},
		{"the form of the other field", []string{"198.51.100.7"}, "10.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := clientip.New(clientip.Options{TrustedProxies: proxies(), UseForwarded: true})
			assert.Equal(t, test.want, r.Text(r.Client(clientip.Parse("10.0.0.1:80"), test.lines)))
		})
	}
}

func TestWalkIsBoundedInAddressesAndBytes(t *testing.T) {
	for _, forwarded := range []bool{false, true} {
		r := clientip.New(clientip.Options{TrustedProxies: proxies(), UseForwarded: forwarded})
		chain := func(hops int, pad string) string {
			var hop []string
			for i := range hops {
				element := fmt.Sprintf("10.1.%d.%d", (hops-i)/256, (hops-i)%256)
				if forwarded {
					element = "for=" + element
				}
				hop = append(hop, pad+element)
			}
			return strings.Join(hop, ",")
		}
		peer := clientip.Parse("10.0.0.1:80")
		at := func(lines ...string) string { return r.Text(r.Client(peer, lines)) }
		assert.Equal(t, "10.1.0.63", at(chain(63, "")))
		assert.Equal(t, "10.1.0.64", at(chain(64, "")))
		assert.Equal(t, "10.1.0.64", at(chain(65, "")))
		assert.Equal(t, "10.1.0.64", at(strings.Split(chain(1000, ""), ",")...))
		assert.Equal(t, "10.1.0.3", at(chain(5, strings.Repeat(" ", 5000))), "16 KiB hold three")
		assert.Equal(t, "10.0.0.1", at(chain(1, strings.Repeat(" ", 16<<10))))
	}
}

func TestPrefixIdentifiesClientsOfIPv6(t *testing.T) {
	for _, test := range []struct {
		bits          int
		address, want string
	}{
		{0, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{-1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{64, "::1", "::/64"},
		{56, "2001:db8:1:2ff:3:4:5:6", "2001:db8:1:200::/56"},
		{128, "2001:0db8::1", "2001:db8::1"},
		{1000, "2001:db8::1", "2001:db8::1"},
		{64, "198.51.100.7", "198.51.100.7"},
		{64, "::ffff:198.51.100.7", "198.51.100.7"},
		{8, "198.51.100.7", "198.51.100.7"},
		{64, "", clientip.Unknown},
	} {
		r := clientip.New(clientip.Options{IPv6Prefix: test.bits})
		for range 2 { // made, and from the cache
			assert.Equal(t, test.want, r.PrefixText(clientip.Parse(test.address)), "%v", test)
		}
	}
}

func TestAddressesOfPeers(t *testing.T) {
	r := clientip.New(clientip.Options{})
	for want, peer := range map[string]net.Addr{
		"198.51.100.7":   &net.TCPAddr{IP: net.ParseIP("198.51.100.7"), Port: 80},
		"2001:db8::7":    &net.UDPAddr{IP: net.ParseIP("2001:db8::7"), Zone: "eth0"},
		"127.0.0.1":      &net.UnixAddr{Name: "8.8.8.8:80", Net: "unix"},
		"192.0.2.9":      textAddr("192.0.2.9:1"),
		clientip.Unknown: textAddr("bufconn"),
	} {
		assert.Equal(t, want, r.Text(clientip.Of(peer)))
	}
	assert.Equal(t, clientip.Unknown, r.Text(clientip.Of(nil)))
	assert.Equal(t, clientip.Unknown, r.Text(clientip.Of(&net.TCPAddr{})))
}

func TestUnknownAddressIsNeverTrusted(t *testing.T) {
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	r := clientip.New(clientip.Options{TrustedProxies: everywhere})
	assert.False(t, r.Trusts(clientip.Address{}))
	assert.True(t, r.Trusts(clientip.Local()))
}

type textAddr string

func (a textAddr) Network() string { return "test" }
func (a textAddr) String() string  { return string(a) }

func TestAddressesCostNothing(t *testing.T) {
	for _, test := range []struct {
		name      string
		forwarded bool
		peer      string
		lines     []string
	}{
		{"a peer", false, "203.0.113.1:80", nil},
		{"a peer with IPv6", false, "[2001:db8::1]:80", nil},
		{"one proxy", false, "10.0.0.1:80", []string{"1.1.1.1, 198.51.100.7"}},
		{"three proxies", false, "10.0.0.1:80", []string{"2001:db8::7, 10.0.0.3, 192.168.1.1"}},
		{"another form, known already", false, "10.0.0.1:80", []string{"2001:DB8::7"}},
		{"Forwarded", true, "10.0.0.1:80", []string{`for="[2001:db8::7]:443";proto=https, for=10.0.0.7`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := clientip.New(clientip.Options{TrustedProxies: proxies(), UseForwarded: test.forwarded})
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				client := r.Client(clientip.Parse(test.peer), test.lines)
				_, _ = r.Text(client), r.PrefixText(client)
			}))
		})
	}
}
