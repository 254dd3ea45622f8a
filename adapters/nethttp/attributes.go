package nethttp

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

// Attributes reads the attributes of requests that rules look at, by these keys:
//
//   - ip: the address of the client, see package [clientip]. A peer on a Unix socket
//     counts as 127.0.0.1. Without an address it is [clientip.Unknown].
//   - ipPrefix: what identifies a client: its IPv4 address, or the network of its IPv6
//     address, such as "2001:db8:1:2::/64".
//   - method, path: those of the request; the path without escapes, as in
//     [url.URL.Path].
//   - host: in lower case, without port, brackets and final dot.
//   - header:NAME, cookie:NAME, query:NAME: the first value, as [http.Header.Get],
//     [http.Request.Cookie] and [url.Values.Get] return it. Names of header fields may
//     be in any case. "header:Host" is [http.Request.Host].
//   - param:NAME: a wildcard of the route, as [http.Request.PathValue] returns it, also
//     if the middleware is directly around the [http.ServeMux], or as [Options.Param]
//     returns it.
//
// A header field, cookie or parameter that the request does not have is no attribute,
// an empty one is "". Texts of more than 1024 bytes are shortened, see
// [attribute.Text]. Nothing is read until a rule asks for it.
//
// It is for adapters, which pass its method Attribute to [core.Attributes]; make it with
// [NewAttributes]. It is safe for concurrent use.
type Attributes struct {
	clients *clientip.Resolver                                         // nil on the client's side
	mux     Mux                                                        // that will serve the request; nil if unknown
	other   func(r *http.Request, name string) (value string, ok bool) // Options.Param
	logger  *slog.Logger                                               // nil to log nothing
	warned  *atomic.Bool
}

// NewAttributes returns the attributes of requests that a server receives. The options
// are for finding their clients.
func NewAttributes(options clientip.Options) *Attributes {
	return &Attributes{clients: clientip.New(options)}
}

// Attribute returns the attribute of a key of a request; nothing for other keys, and for a
// request that is nil or has no URL.
func (a *Attributes) Attribute(r *http.Request, key string) rule.Attribute {
	if r == nil || r.URL == nil {
		return rule.Attribute{}
	}
	switch key {
	case rule.KeyIP:
		if a.clients != nil {
			return rule.String(a.clients.Text(a.client(r)))
		}
	case rule.KeyIPPrefix:
		if a.clients != nil {
			return rule.String(a.clients.PrefixText(a.client(r)))
		}
	case "method":
		if r.Method == "" { // of a client
			return rule.String(http.MethodGet)
		}
		return attribute.Text(r.Method)
	case "host":
		return attribute.Text(hostOf(r))
	case "path":
		return attribute.Text(r.URL.Path)
	}
	if text, ok := a.named(r, key); ok {
		return attribute.Text(text)
	}
	return rule.Attribute{}
}

// named returns the text of a key that contains a name.
func (a *Attributes) named(r *http.Request, key string) (text string, ok bool) {
	switch kind, name, _ := strings.Cut(key, ":"); kind {
	case "header":
		return headerValue(r, name)
	case "cookie":
		return cookieValue(r.Header["Cookie"], name)
	case "query":
		return queryValue(r.URL.RawQuery, name)
	case "param":
		if a.clients != nil {
			return a.param(r, name)
		}
	}
	return "", false
}

// client returns the address of the client of a request.
func (a *Attributes) client(r *http.Request) clientip.Address {
	// What a Unix socket says of its peer is a path, which may look like an address.
	if _, local := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); local {
		return a.clients.Client(clientip.Local(), r.Header[a.clients.FieldName()])
	}
	return a.clients.Client(clientip.Parse(r.RemoteAddr), r.Header[a.clients.FieldName()])
}

func hostOf(r *http.Request) string {
	host := r.Host
	if host == "" {
		host = r.URL.Host // of a client, unless it is empty, too
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host, _, _ = strings.Cut(inner, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// headerValue returns the first value of a header field.
func headerValue(r *http.Request, name string) (text string, ok bool) {
	const usual = 64 // bytes; longer names are copied
	values := r.Header[name]
	if values == nil && len(name) <= usual {
		var canonical [usual]byte
		values = r.Header[string(canonicalName(canonical[:0], name))] // copies nothing
	} else if values == nil {
		values = r.Header[http.CanonicalHeaderKey(name)]
	}
	switch {
	case len(values) > 0:
		return values[0], true
	case r.Host != "" && strings.EqualFold(name, "Host"):
		return r.Host, true
	}
	return "", false
}

// canonicalName appends the canonical form of the name of a header field: letters are in
// upper case at the beginning and after hyphens, else in lower case.
func canonicalName(list []byte, name string) []byte {
	const shift = 'a' - 'A'
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' {
			c -= shift
		} else if !upper && 'A' <= c && c <= 'Z' {
			c += shift
		}
		list = append(list, c)
		upper = c == '-'
	}
	return list
}

// cookieValue returns the value of a cookie as [http.Request.Cookie] does: the first
// that is valid.
func cookieValue(lines []string, name string) (text string, ok bool) {
	for _, line := range lines {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			key, value, _ := strings.Cut(strings.Trim(pair, whitespace), "=")
			if strings.Trim(key, whitespace) != name {
				continue
			}
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			if strings.IndexFunc(value, isInvalidInCookie) < 0 {
				return value, true
			}
		}
	}
	return "", false
}

// whitespace is what may stand around a cookie.
const whitespace = " \t\r\n"

func isInvalidInCookie(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }

// queryValue returns the value of a parameter of a query as [url.Values.Get] does: the
// first that is valid.
func queryValue(query, name string) (text string, ok bool) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if pair == "" || strings.Contains(pair, ";") || !unescapesTo(key, name) {
			continue
		}
		if text, err := url.QueryUnescape(value); err == nil {
			return text, true
		}
	}
	return "", false
}

// unescapesTo reports whether an escaped key of a query is the name, as comparing it
// with the result of [url.QueryUnescape] would, which allocates.
func unescapesTo(key, name string) bool {
	for i := 0; i < len(key); i++ {
		if name == "" {
			return false
		}
		c := key[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(key) && isHex(key[i+1]) && isHex(key[i+2]):
			c = fromHex(key[i+1])<<4 | fromHex(key[i+2])
			i += 2
		case c == '%':
			return false
		}
		if c != name[0] {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func fromHex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | ' ') - 'a' + 10
}

// param returns the value of a wildcard of the route. The mux that will serve the
// request goes before an outer one, as it does for the handler.
func (a *Attributes) param(r *http.Request, name string) (text string, ok bool) {
	if a.other != nil {
		if text, ok := a.other(r, name); ok {
			return text, true
		}
	}
	if a.mux != nil {
		_, pattern := a.mux.Handler(r)
		if text, ok := pathValue(pattern, r.URL.EscapedPath(), name); ok {
			return text, true
		}
	}
	if text := r.PathValue(name); text != "" {
		return text, true
	}
	if r.Pattern == "" && a.mux == nil && a.other == nil && a.logger != nil && !a.warned.Swap(true) {
		a.logger.LogAttrs(r.Context(), slog.LevelWarn,
			"penstock: the net/http middleware cannot tell the path values of requests, rules that look at them find none: "+
				"put it directly around the mux or after the routing, or set nethttp.Options.Param",
			slog.String("attribute", "param:"+name), slog.String("path", rule.Quote(r.URL.Path)))
	}
	return "", hasWildcard(r.Pattern, name) // it is empty
}

// pathValue returns the value of a wildcard of a ServeMux pattern in a path that it
// matches.
func pathValue(pattern, path, name string) (text string, ok bool) {
	_, route := splitPattern(pattern)
	_, route, _ = strings.Cut(route, "/") // without a host
	path = strings.TrimPrefix(path, "/")
	for more := true; more; {
		var segment, value string
		rest := path
		segment, route, more = strings.Cut(route, "/")
		value, path, ok = strings.Cut(path, "/")
		switch wildcard, multi := wildcardOf(segment); {
		case wildcard != name || name == "":
		case multi:
			return unescapePath(rest), true
		default:
			return unescapePath(value), true
		}
		more = more && ok
	}
	return "", false
}

// hasWildcard reports whether a ServeMux pattern has a wildcard of the name.
func hasWildcard(pattern, name string) bool {
	for segment := range strings.SplitSeq(pattern, "/") {
		if wildcard, _ := wildcardOf(segment); wildcard == name && name != "" {
			return true
		}
	}
	return false
}

// wildcardOf returns the name of the wildcard that a segment of a pattern is, "" if it is
// none. multi says that it stands for the rest of the path.
func wildcardOf(segment string) (name string, multi bool) {
	if !strings.HasPrefix(segment, "{") || !strings.HasSuffix(segment, "}") || segment == "{$}" { // the end
		return "", false
	}
	return strings.CutSuffix(segment[1:len(segment)-1], "...")
}

func unescapePath(path string) string {
	if text, err := url.PathUnescape(path); err == nil {
		return text
	}
	return path
}
