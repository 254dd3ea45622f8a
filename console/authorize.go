package console

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// TokenFile returns a function for [Options.Authorize] that knows people by tokens, which the page asks
// for, and programs send as "Authorization: Bearer …". Each line of the file has a role, a name and a
// token, separated by white space; a # begins a comment:
//
//	editor  alice  4f0c6a…
//
// Tokens have at least 16 characters. The file is read again when it changes. While it cannot be read,
// or has a mistake, the last good version counts.
func TokenFile(name string) (func(*http.Request) (Identity, Role), error) {
	f := &tokenFile{name: name}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.authorize, nil
}

// tokenFile is a file of tokens.
type tokenFile struct {
	name string

	mu       sync.Mutex // guards what follows
	modified time.Time
	size     int64
	tokens   []token
}

// token is who has a token. Its hash is kept, whose comparison does not tell how much of it is right.
type token struct {
	hash [sha256.Size]byte
	who  Identity
	role Role
}

// read reads the file if it has changed.
func (f *tokenFile) read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	if err != nil {
		return fmt.Errorf("console: tokens: %w", err)
	}
	if info.ModTime().Equal(f.modified) && info.Size() == f.size {
		return nil
	}
	text, err := os.ReadFile(f.name)
	if err != nil {
		return fmt.Errorf("console: tokens: %w", err)
	}
	tokens, err := parseTokens(f.name, string(text))
	if err != nil {
		return err
	}
	f.tokens, f.modified, f.size = tokens, info.ModTime(), info.Size()
	return nil
}

// parseTokens reads a file of tokens. Errors do not have the tokens.
func parseTokens(name, text string) (tokens []token, err error) {
	const shortest = 16
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		parts := strings.Fields(line)
		switch {
		case len(parts) == 0:
			continue
		case len(parts) != 3:
			return nil, fmt.Errorf("console: %s:%d: must be a role, a name and a token", name, number)
		case len(parts[2]) < shortest:
			return nil, fmt.Errorf("console: %s:%d: the token has less than %d characters", name, number, shortest)
		}
		role, err := ParseRole(parts[0])
		if err != nil {
			return nil, fmt.Errorf("console: %s:%d: %w", name, number, err)
		}
		tokens = append(tokens, token{sha256.Sum256([]byte(parts[2])), Identity(parts[1]), role})
	}
	return tokens, lines.Err()
}

func (f *tokenFile) authorize(r *http.Request) (Identity, Role) {
	_ = f.read() // the last good version counts
	sent := sha256.Sum256([]byte(tokenOf(r)))
	f.mu.Lock()
	defer f.mu.Unlock()
	var found token
	for _, t := range f.tokens {
		if subtle.ConstantTimeCompare(sent[:], t.hash[:]) == 1 {
			found = t
		}
	}
	return found.who, found.role
}

// tokenOf returns the token that a request has, "" if none.
func tokenOf(r *http.Request) string {
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(sent)
	}
	return ""
}

// ClientCertificates returns a function for [Options.Authorize] that knows people by the common name of
// the certificate that their browser has shown, which the server has verified:
// [crypto/tls.RequireAndVerifyClientCert]. Names that are not in the map have the role of "*", or none.
func ClientCertificates(roles map[string]Role) func(*http.Request) (Identity, Role) {
	return func(r *http.Request) (Identity, Role) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.PeerCertificates) == 0 {
			return "", Nobody
		}
		return roleOf(r.TLS.PeerCertificates[0].Subject.CommonName, roles)
	}
}

// ProxyHeader returns a function for [Options.Authorize] that believes what a proxy which has signed
// people in says of them, in a field of the header such as "X-Forwarded-User". The proxy has to set or
// remove the field always, and its address has to be in one of the networks. Names that are not in the
// map have the role of "*", or none.
func ProxyHeader(field string, proxies []netip.Prefix, roles map[string]Role) func(*http.Request) (Identity, Role) {
	return func(r *http.Request) (Identity, Role) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !within(from.Addr(), proxies) {
			return "", Nobody
		}
		values := r.Header.Values(field)
		if len(values) != 1 {
			return "", Nobody
		}
		return roleOf(values[0], roles)
	}
}

// roleOf returns the role of a name.
func roleOf(name string, roles map[string]Role) (Identity, Role) {
	if name == "" || name == "*" {
		return "", Nobody
	}
	role, known := roles[name]
	if !known {
		role = roles["*"]
	}
	return Identity(name), role
}

// within says whether an address is in one of the networks.
func within(addr netip.Addr, networks []netip.Prefix) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}
