package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// site is a service behind a trusted proxy at 10.0.0.1, which adds the address of whoever
// it has a connection from to X-Forwarded-For.
type site struct {
	*service
	handler http.Handler
}

func newSite(t *testing.T, forwarded bool, limits ...hotparam.Rule) *site {
	t.Helper()
	s := newService(t, 0, limits...)
	options := nethttp.Options{
		Resource: func(*http.Request) string { return "login" },
		Clients:  clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, UseForwarded: forwarded},
		Logger:   slog.New(slog.DiscardHandler),
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return &site{s, nethttp.Middleware(s.engine, options)(ok)}
}

// get makes a request from a peer, with header fields such as "Name: value".
func (s *site) get(peer string, fields ...string) bool {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code == http.StatusOK
}

// forgeries are what a client puts in front of what the proxy adds.
func forgeries(random *rand.Rand) []string {
	invented := fmt.Sprintf("%d.%d.%d.%d", 1+random.IntN(220), random.IntN(256), random.IntN(256), random.IntN(256))
	return [][]string{
		nil,
		{"X-Forwarded-For: " + invented},
		{"X-Forwarded-For: " + invented + ", 10.0.0.7", "Forwarded: for=" + invented},
		{"X-Forwarded-For: 10.0.0.9", "X-Forwarded-For: " + invented, "X-Forwarded-For: "},
		{"X-Forwarded-For: " + strings.Repeat(invented+",", 200)},
		{"X-Forwarded-For: \"" + invented, "Forwarded: for=\"" + invented},
		{"Forwarded: for=" + invented + ";by=10.0.0.1", "X-Real-IP: " + invented, "True-Client-IP: " + invented},
		{"Forwarded: for=_hidden, for=unknown", "X-Forwarded-For: unknown"},
		{"x-forwarded-for: ::1, ::ffff:10.0.0.3", "Forwarded: for=\"[::1]:80\\"},
	}[random.IntN(9)]
}

// The attacker has one IPv4 address and one network of IPv6 addresses, comes directly and
// through the proxy, and says what it likes. It gets the limit of two clients, and honest
// clients lose nothing.
func TestForgedAddressesGainNothing(t *testing.T) {
	for _, forwarded := range []bool{false, true} {
		t.Run(fmt.Sprint("Forwarded: ", forwarded), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, forwarded, hotparam.Rule{Param: rule.StringsOf("ip"), Limit: 5, MaxValues: 1000})
			random := rand.New(rand.NewPCG(1, 2))
			name, added := "X-Forwarded-For", "%s"
			if forwarded {
				name, added = "Forwarded", "proto=http;for=\"%s\""
			}
			proxied := func(as string, fields []string) []string {
				if forwarded && strings.Count(as, ":") > 1 && as[0] != '[' {
					as = "[" + as + "]"
				}
				return append(fields, name+": "+fmt.Sprintf(added, as))
			}
			passed, lost, step := 0, 0, 2*time.Millisecond
			for i := range 10_000 {
				s.clock.Advance(step)
				host := fmt.Sprintf("%x:%x:%x:%x", random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16))
				as := []string{
					"203.0.113.9", "203.0.113.9:4711", "::ffff:203.0.113.9", "::ffff:cb00:7109", "2001:db8:5:6:" + host,
					"[2001:DB8:5:6:" + host + "]:99", "2001:0db8:0005:0006:" + host,
				}[random.IntN(7)]
				var passes bool
				if random.IntN(2) == 0 {
					passes = s.get("10.0.0.1:1000", proxied(as, forgeries(random))...)
				} else {
					direct := []string{"203.0.113.9:1", "[::ffff:203.0.113.9]:2", "[2001:db8:5:6:" + host + "]:3"}
					passes = s.get(direct[random.IntN(3)], forgeries(random)...)
				}
				if passes {
					passed++
				}
				if i%25 == 0 { // each of 5 clients comes 4 times a second
					client := i / 25 % 5
					at := []string{"198.51.100.1", "198.51.100.2", "2001:db8:5:7::1", "2001:db8:5:8::1", "203.0.113.8"}[client]
					if !s.get("10.0.0.1:1000", proxied(at, nil)...) {
						lost++
					}
				}
			}
			may := 2 * (5 + 5*int(10_000*step/time.Second))
			t.Logf("attacker: %d of %d passes; honest clients: %d of 400 lost", passed, may, lost)
			assert.LessOrEqual(t, passed, may)
			assert.GreaterOrEqual(t, passed, may-2)
			assert.Zero(t, lost)
		})
	}
}

// Repeated, oversized and odd fields are values, not a way around the limit.
func TestOddHeaderFieldsAreNoWayAroundTheLimit(t *testing.T) {
	t.Parallel()
	for _, missing := range []rule.Missing{rule.MissingPass, rule.MissingShare, rule.MissingBlock} {
		s := newSite(t, false, hotparam.Rule{
			Param: rule.StringsOf("header:X-Key"), Limit: 3, Window: 24 * time.Hour, Missing: missing,
		})
		long := strings.Repeat("k", 5000)
		for name, fields := range map[string][]string{
			"repeated":            {"X-Key: a", "X-Key: b"},
			"long":                {"X-Key: " + long},
			"long, another end":   {"X-Key: " + long + "x"},
			"empty":               {"X-Key: "},
			"empty, then another": {"X-Key:  ", "X-Key: c"},
			"invalid":             {"X-Key: \xff\xfe"},
		} {
			passed := 0
			for range 10 {
				if s.get("203.0.113.9:1", fields...) {
					passed++
				}
			}
			assert.LessOrEqual(t, passed, 3, "%s, missing: %s", name, missing)
		}
		for i := range 10 { // what follows the first field does not matter
			require.False(t, s.get("203.0.113.9:1", "X-Key: a", fmt.Sprint("X-Key: ", i)))
		}
	}
}

// Who is on a list of denied addresses is refused, and who is not on one of allowed
// addresses, whatever they say and however their address is written.
func TestForgedAddressesDoNotPassAccessRules(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, r := range map[string]access.Rule{
		"denied":      {Deny: rule.StringsOf("203.0.113.0/24", "2001:db8:5::/48")},
		"not allowed": {Allow: rule.StringsOf("198.51.100.0/24", "2001:db8:6::/48")},
	} {
		r.Resource = "login"
		for _, forwarded := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", Forwarded: ", forwarded), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, forwarded)
				require.NoError(t, s.engine.Load(rules.Set{Access: []access.Rule{r}}))
				field := "X-Forwarded-For: %s"
				if forwarded {
					field = `Forwarded: for="%s"`
				}
				bracketed := func(as string) string {
					if forwarded && strings.Count(as, ":") > 1 && as[0] != '[' {
						return "[" + as + "]"
					}
					return as
				}
				random := rand.New(rand.NewPCG(1, 2))
				for range 2000 {
					forged := append(forgeries(random), "X-Forwarded-For: 198.51.100.1", "Forwarded: for=198.51.100.1")
					for _, as := range []string{
						"203.0.113.9", "203.0.113.9:80", "::ffff:203.0.113.9", "::ffff:cb00:7109", "2001:db8:5::1", "2001:DB8:5:0::1",
						"[2001:db8:5::1]:80", "2001:0db8:0005::1",
					} {
						require.False(t, s.get("10.0.0.1:1", append(forged, fmt.Sprintf(field, bracketed(as)))...), "%s, %q", as, forged)
					}
					for _, peer := range []string{"203.0.113.9:1", "[::ffff:203.0.113.9]:1", "[2001:db8:5::2]:1", "[2001:db8:5::2%eth0]:1"} {
						require.False(t, s.get(peer, forged...), "%s, %q", peer, forged)
					}
					for _, as := range []string{"198.51.100.7", "2001:db8:6::1"} {
						require.True(t, s.get("10.0.0.1:1", fmt.Sprintf(field, bracketed(as))), as)
					}
				}
			})
		}
	}
}
