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

// Options say who may use a [Handler] or a [ControlHandler], and what that gives. The zero value is one that anybody who
// reaches the handler may use.
type Options struct {
	// Hosts are the names, without a port, under which operators reach the handler, beside localhost and addresses:
	// "ops.internal". Requests for other names are refused: else whoever has a browser on the machine open a page of
	// theirs could have their own name point to the address of the handler, and read what it tells. A ControlHandler
	// always checks that, a Handler unless Hosts and Tokens are nil.
	Hosts []string

	// Tokens has the handler answer only requests with one of the tokens, in the field Authorization: "Bearer …".
	// Several are for the time in which one takes the place of another. An empty token matches nothing: if there is
	// no other, all requests are refused. If Tokens is nil, none is needed.
	Tokens []string

	// Recordings has a Handler answer GET requests for recorded calls, as a file of the package recording:
	//
	//	recording?for=60s   the calls of the next minute
	//	recording?last=60s  those of the last one, of an engine with a [core.Config.Recorder]
	//
	// Without it nobody gets them, since a recording has who called what and when: names of callers, of users as
	// hashes, or as they are if the engine was told to record them so. It is for a listener that only operators
	// reach, or with Tokens. Recording costs a call some nanoseconds, and the engine the memory that its recorder may
	// use.
	Recordings bool

	// Name is that of the instance in recordings.
	Name string
}

func (o *Options) callers() *controlCallers {
	a := &controlCallers{needsToken: o.Tokens != nil}
	for _, name := range o.Hosts {
		a.hosts = append(a.hosts, canonicalHost(name))
	}
	for _, token := range o.Tokens {
		if token != "" {
			a.tokens = append(a.tokens, sha256.Sum256([]byte(token)))
		}
	}
	return a
}

// controlCallers says who may use the handler.
type controlCallers struct {
	anyHost    bool // requests for any host are answered
	hosts      []string
	needsToken bool
	tokens     [][sha256.Size]byte // hashes, whose comparison does not tell how long a token is
}

// guard returns a handler that refuses requests that may not use another one.
func (a controlCallers) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !a.anyHost && !a.knowsHost(r.Host):
			answer(w, http.StatusForbidden, Failure{"inspect: the request is for a host that this handler is not known to have: " +
				"use an address or localhost, or name the host in inspect.Options"})
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
