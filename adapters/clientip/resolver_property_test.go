package clientip_test

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adapters/clientip"
)

// The client's part of the field is whatever it likes; each proxy then adds the address
// that it has seen, to the last line or as a line of its own.
func TestClientBehindTrustedProxiesCannotChooseItsAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		forwarded := rapid.Bool().Draw(t, "Forwarded")
		forged := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`(for=|,|;|"|\\|10\.0\.0\.1|1\.2\.3\.4| |\[|::1|\])*`)), 0, 4)
		lines := forged.Draw(t, "forged")
		client := rapid.SampledFrom([]string{"198.51.100.7", "2001:db8::7", "127.0.0.1"}).Draw(t, "client")
		seen := client
		for _, proxy := range rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "192.168.0.9", "2001:db8:ffff::3"}), 1, 5).Draw(t, "proxies") {
			element := seen
			if forwarded {
				element = forwardedElement(t, seen)
			}
			if len(lines) > 0 && rapid.Bool().Draw(t, "same line") {
				lines[len(lines)-1] += ", " + element
			} else {
				lines = append(lines, element)
			}
			seen = proxy
		}
		r := clientip.New(clientip.Options{TrustedProxies: proxies(), UseForwarded: forwarded})
		assert.Equal(t, client, r.Text(r.Client(clientip.Parse(seen), lines)), "%q", lines)
		untrusted := clientip.Parse("203.0.113.1:80")
		assert.Equal(t, "203.0.113.1", r.Text(r.Client(untrusted, lines)), "%q", lines)
	})
}

// forwardedElement returns what a proxy adds for an address that it has seen, with the
// host that the client chose.
func forwardedElement(t *rapid.T, seen string) string {
	if strings.Contains(seen, ":") {
		seen = `"[` + seen + `]"`
	}
	host := rapid.StringMatching(`[ -~]{0,30}`).Draw(t, "host")
	host = `host="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(host) + `"`
	if rapid.Bool().Draw(t, "host first") {
		return host + ";for=" + seen
	}
	return "proto=https;for=" + seen + ";" + host
}

// FuzzClient compares the walk with a slow reference.
func FuzzClient(f *testing.F) {
	for _, seed := range []string{
		"", "198.51.100.7", "1.1.1.1, 198.51.100.7, 10.0.0.2\n192.168.3.4", "[2001:db8::7]:443,10.0.0.1:80",
		"::ffff:10.0.0.1", "fe80::1%eth0, 10.0.0.1", "unknown,10.0.0.1",
		`for="[2001:db8::7]:443";proto=https, for=10.0.0.2`, `for="1.1.1.1, for=198.51.100.7`, `for=_hidden, For="10.0.0.1:_a"`,
		`host="\",;for=1.1.1.1\\";for=10.0.0.1`, `for=10.0.0.1;host="a,b", for=10.0.0.2`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if len(field) > 16<<10 {
			return
		}
		lines := strings.Split(field, "\n")
		peer := clientip.Parse("10.0.0.1:80")
		r := clientip.New(clientip.Options{TrustedProxies: proxies()})
		got := r.Text(r.Client(peer, slices.Clone(lines)))
		assert.Equal(t, slowClient(slowElements(lines)), got)

		r = clientip.New(clientip.Options{TrustedProxies: proxies(), UseForwarded: true})
		got = r.Text(r.Client(peer, slices.Clone(lines)))
		if nodes, wellFormed := slowNodes(lines); wellFormed {
			assert.Equal(t, slowClient(nodes), got)
		}
		addr, err := netip.ParseAddr(got)
		assert.NoError(t, err)
		assert.Equal(t, addr.String(), got)
	})
}

// slowClient returns the client behind 10.0.0.1, from addresses of which the last was
// added last.
func slowClient(elements []string) string {
	client := net.ParseIP("10.0.0.1")
	hops := 0
	for _, element := range slices.Backward(elements) {
		ip := slowParse(element)
		if hops++; ip == nil || hops > 64 || !slowTrusts(client) {
			break
		}
		client = ip
	}
	return client.String()
}

func slowTrusts(ip net.IP) bool {
	for _, cidr := range []string{"10.0.0.0/8", "2001:db8:ffff::/48", "192.168.0.0/16"} {
		if _, network, _ := net.ParseCIDR(cidr); network.Contains(ip) {
			return true
		}
	}
	return false
}

var (
	slowIPv4 = regexp.MustCompile(`^([0-9.]+)(:([0-9]{1,5}|_[A-Za-z0-9._-]+))?$`)
	slowBoth = regexp.MustCompile(`^\[([^\]]*)\](:([0-9]{1,5}|_[A-Za-z0-9._-]+))?$`)
)

func slowParse(text string) net.IP {
	text = strings.Trim(text, " \t")
	if m := slowIPv4.FindStringSubmatch(text); m != nil {
		return net.ParseIP(m[1])
	}
	if m := slowBoth.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	host, zone, zoned := strings.Cut(text, "%")
	if !strings.Contains(host, ":") || zoned && zone == "" || len(host) > 45 {
		return nil
	}
	return net.ParseIP(host)
}

func slowElements(lines []string) (elements []string) {
	return strings.Split(strings.Join(lines, ","), ",")
}

var (
	slowQuoted  = `"(?:[^"\\]|\\(?s:.))*"`
	slowPair    = `[ \t]*([A-Za-z0-9]+)=([^ \t",;\\]+|` + slowQuoted + `)[ \t]*`
	slowPairs   = regexp.MustCompile(slowPair)
	slowElement = regexp.MustCompile(`^` + slowPair + `(?:;` + slowPair + `)*$`)
)

// slowNodes returns the nodes of Forwarded, if all of its elements are well formed and
// have one.
func slowNodes(lines []string) (nodes []string, wellFormed bool) {
	rest := strings.Join(lines, ",")
	for rest != "" {
		comma := len(rest)
		for comma >= 0 {
			comma = strings.LastIndexByte(rest[:comma], ',')
			if slowElement.MatchString(rest[comma+1:]) {
				break
			}
		}
		if !slowElement.MatchString(rest[comma+1:]) {
			return nil, false
		}
		node := ""
		for _, pair := range slowPairs.FindAllStringSubmatch(rest[comma+1:], -1) {
			if strings.EqualFold(pair[1], "for") {
				if node != "" {
					return nil, false
				}
				node = strings.Trim(pair[2], `"`)
			}
		}
		nodes = append([]string{node}, nodes...)
		rest = rest[:max(comma, 0)]
	}
	return nodes, len(nodes) > 0
}
