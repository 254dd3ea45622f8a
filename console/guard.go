package console

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// bodyTimeout is how long a request may take to send its body.
const bodyTimeout = 30 * time.Second

// policy is what the page may load and do: what the handler serves, and nothing from elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// guarded returns the handler behind the checks that every request passes.
func (h *handler) guarded() http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		limitBody(w, r)
		if !h.knowsHost(r.Host) {
			fail(w, http.StatusForbidden, "the request is for a host that this console is not known to have: "+
				"use an address or localhost, or have the options name the host")
			return
		}
		if err := protection.Check(r); err != nil {
			fail(w, http.StatusForbidden, "the request comes from a page of another origin")
			return
		}
		h.route(w, r)
	})
}

// limitBody bounds how long the body of a request may take to come. The server reads what is left of it, too.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	r.Body = &timedBody{r.Body, control}
}

// timedBody is a body after which there is no deadline: while a request is answered, nothing comes.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// knowsHost says whether the host of a request is one under which people reach the console.
func (h *handler) knowsHost(hostport string) bool {
	host := hostport
	if name, port, err := net.SplitHostPort(hostport); err == nil && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	host = canonicalHost(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || slices.ContainsFunc(h.Hosts, func(known string) bool { return canonicalHost(known) == host })
}

// canonicalHost returns a host in lower case, without the dot at its end and without brackets.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return host
}
