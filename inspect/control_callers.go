package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ControlOption says who may use a [ControlHandler].
type ControlOption func(*controlCallers)

// ControlHosts are the names, without a port, under which operators reach the handler, beside
// localhost and addresses: "ops.internal". Requests for other names are refused, see
// [ControlHandler].
func ControlHosts(names ...string) ControlOption {
	return func(a *controlCallers) {
		for _, name := range names {
			a.hosts = append(a.hosts, canonicalHost(name))
		}
	}
}

// ControlToken has the handler answer only requests with one of the tokens, in the field
// Authorization: "Bearer …". Several are for the time in which one takes the place of another. An
// empty token matches nothing; if there is no other, all requests are refused.
func ControlToken(tokens ...string) ControlOption {
	return func(a *controlCallers) {
		a.needsToken = true
		for _, token := range tokens {
			if token != "" {
				a.tokens = append(a.tokens, sha256.Sum256([]byte(token)))
			}
		}
	}
}

// controlCallers says who may use the handler.
type controlCallers struct {
	hosts      []string
	needsToken bool
	tokens     [][sha256.Size]byte // hashes, whose comparison does not tell how long a token is
}

// guard returns a handler that refuses requests that may not use another one.
func (a controlCallers) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !a.knowsHost(r.Host):
			answer(w, http.StatusForbidden, Failure{"inspect: the request is for a host that this handler is not known to have: " +
				"use an address or localhost, or name the host with inspect.ControlHosts"})
		case a.needsToken && !a.hasToken(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, Failure{"inspect: the request needs the token of this handler: Authorization: Bearer …"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knowsHost says whether the host of a request is one under which operators reach the handler.
// An attacker can have a name point to any address, and a browser then sends the requests of the
// attacker's pages there, as those of the same site. It cannot do so for an address.
func (a controlCallers) knowsHost(hostport string) bool {
	host := hostport
	if name, port, err := net.SplitHostPort(hostport); err == nil && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	host = canonicalHost(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || slices.Contains(a.hosts, host)
}

// canonicalHost returns a host in lower case, without the dot at its end and without brackets.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return host
}

// hasToken says whether a request has one of the tokens.
func (a controlCallers) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sent, known := sha256.Sum256([]byte(strings.TrimSpace(token))), 0
	for i := range a.tokens {
		known |= subtle.ConstantTimeCompare(sent[:], a.tokens[i][:])
	}
	return known == 1
}
