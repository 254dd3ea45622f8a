package serve

import (
	"cmp"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// StatusField is the header field in which a [ForwardAuth] says the status of a refusal, if its
// RefuseStatus stands in place of that.
const StatusField = "Penstock-Status"

// ForwardAuthOptions configure a [ForwardAuth]. The zero value is ready to use.
type ForwardAuthOptions struct {
	HTTPOptions

	// ResourceHeader is the header field in which the proxy names the resource of the request,
	// usually "Penstock-Resource", for proxies that know the route. The proxy has to set it
	// for every request, as clients may send it too. Defaults to none.
	ResourceHeader string

	// RefuseStatus is the status of all answers but 200, for proxies that know few: nginx
	// passes on 401 and 403 only. What the status would be stands in [StatusField]. Defaults
	// to that status itself.
	RefuseStatus int
}

// ForwardAuth is the HTTP handler that proxies ask before they pass a request on: nginx
// (auth_request), Traefik (ForwardAuth), Caddy (forward_auth). Make it with [NewForwardAuth]. It
// is safe for concurrent use.
//
// The proxy says by X-Forwarded-Method, X-Forwarded-Uri, X-Forwarded-Host and X-Forwarded-For
// which request it asks about, and passes on its other header fields. Rules see the attributes of
// nethttp.Attributes. The answer to a request that may go on is 200; others are those of the
// HTTP adapter, such as 429 with Retry-After and the RateLimit fields, or 403. A call may wait
// as long as its rules let it; the proxy waits meanwhile.
//
// Who is not one of the TrustedProxies gets 403, whatever it asks. A request without
// X-Forwarded-Uri, or with one that is none, gets 400, unless ResourceHeader names the resource. So does one that
// has one of these fields, that of the origin, or X-Forwarded-Host twice: a proxy sets them, and which is
// the client's is unknown.
// Once the engine is closed, answers are 503.
type ForwardAuth struct {
	judge   *httpJudge
	options ForwardAuthOptions
	clients *clientip.Resolver
}

// NewForwardAuth returns the handler that decides by the rules of the engine. The error is that
// a route makes no sense, or conflicts with another.
func NewForwardAuth(engine *core.Engine, options ForwardAuthOptions) (*ForwardAuth, error) {
	if options.Clients.TrustedProxies == nil {
		options.Clients.TrustedProxies = loopback()
	}
	judge, err := newHTTPJudge(engine, options.HTTPOptions)
	if err != nil {
		return nil, err
	}
	return &ForwardAuth{judge, options, clientip.New(options.Clients)}, nil
}

// ServeHTTP answers a proxy.
func (f *ForwardAuth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.clients.Trusts(peerOf(r)) {
		f.refuse(w, http.StatusForbidden, "penstock: whoever asks is none of the trusted proxies")
		return
	}
	if name := f.repeated(r.Header); name != "" {
		f.refuse(w, http.StatusBadRequest, "penstock: the proxy has to set "+name+" in place of what clients write: there are two")
		return
	}
	resource := ""
	if f.options.ResourceHeader != "" {
		resource = r.Header.Get(f.options.ResourceHeader)
	}
	uri := r.Header.Get("X-Forwarded-Uri")
	if uri == "" && resource != "" {
		uri = "/"
	}
	target, err := targetOf(uri)
	if err != nil {
		f.refuse(w, http.StatusBadRequest, "penstock: the proxy has to say which request it asks about, by X-Forwarded-Uri and X-Forwarded-Method")
		return
	}
	asked := *r
	if asked.Method = cmp.Or(r.Header.Get("X-Forwarded-Method"), r.Method); !isMethod(asked.Method) {
		f.refuse(w, http.StatusBadRequest, "penstock: X-Forwarded-Method is no method")
		return
	}
	asked.URL, asked.Host, asked.Pattern = target, cmp.Or(r.Header.Get("X-Forwarded-Host"), r.Host), ""
	verdict := f.judge.decide(r.Context(), &asked, resource)
	if verdict.err != nil {
		nethttp.WriteProblem(&verdict.reply, verdict.err)
	}
	maps.Copy(w.Header(), verdict.header)
	f.writeStatus(w, verdict.status)
	_, _ = w.Write(verdict.body) // fails only when the proxy has gone
}

// repeated returns the name of a field that says which request is asked about and is there more than
// once, "" if there is none.
func (f *ForwardAuth) repeated(header http.Header) string {
	for _, name := range []string{
		"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", f.options.ResourceHeader, f.options.OriginHeader,
	} {
		if len(header.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// isMethod says whether a text can be the method of a request.
func isMethod(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}

// refuse answers what cannot be decided.
func (f *ForwardAuth) refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	f.writeStatus(w, status)
	_, _ = io.WriteString(w, why+"\n")
}

// writeStatus writes the header with the status, or what stands in its place.
func (f *ForwardAuth) writeStatus(w http.ResponseWriter, status int) {
	if status != http.StatusOK && f.options.RefuseStatus != 0 {
		w.Header().Set(StatusField, strconv.Itoa(status))
		status = f.options.RefuseStatus
	}
	w.WriteHeader(status)
}

// loopback returns the addresses of loopback.
func loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// peerOf returns the address of whoever has connected.
func peerOf(r *http.Request) clientip.Address {
	if _, local := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); local {
		return clientip.Local()
	}
	return clientip.Parse(r.RemoteAddr)
}
