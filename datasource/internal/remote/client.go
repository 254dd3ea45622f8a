// Package remote sends the requests of sources that read an API over HTTP. What it returns
// and reports has no credentials.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client sends requests to one server. It follows no redirects, because credentials are
// for that server alone.
type Client struct {
	base *url.URL
	http *http.Client
	own  *http.Transport // nil if the transport is the caller's
}

// Parse returns the address of a server. A host:port stands for http://host:port. Its
// errors do not repeat the address, which may contain a password.
func Parse(pkg, address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the address cannot be parsed: write it as https://host:port", pkg)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: the scheme of the address is %q: use http or https", pkg, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s: the address has no host: write it as https://host:port", pkg)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: the address has a user, a query or a fragment: leave them out, credentials have options of their own", pkg)
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	return u, nil
}

// NewClient returns a client of the server at an address. Without a transport it makes one
// of its own, with that TLS configuration; [Client.Close] closes its connections.
func NewClient(base *url.URL, transport http.RoundTripper, config *tls.Config) *Client {
	c := &Client{base: base}
	if transport == nil {
		c.own = http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // of the standard library
		c.own.TLSClientConfig = config.Clone()
		transport = c.own
	}
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Close closes the connections that are not in use.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Request is one request.
type Request struct {
	Method  string
	Path    string // escaped, begins with a slash
	Query   url.Values
	Form    url.Values // the body; nil for none
	Header  http.Header
	Timeout time.Duration // until the body has been read
}

// Do sends a request and calls read with the response. The body is closed after that.
func (c *Client) Do(ctx context.Context, r Request, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var body io.Reader
	if r.Form != nil {
		body = strings.NewReader(r.Form.Encode())
	}
	address := c.base.Scheme + "://" + c.base.Host + c.base.EscapedPath() + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return errors.New("the request cannot be made: check the address")
	}
	maps.Copy(request.Header, r.Header)
	if r.Form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.explain(err)
	}
	defer response.Body.Close()
	if err := read(response); err != nil {
		return c.explain(err)
	}
	return nil
}

// explain removes the URL, which may have credentials in its query, from an error.
func (c *Client) explain(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s in time: %w", c.base.Host, err)
	}
	return err
}

// maxMessage is how many bytes of an error of a server are repeated.
const maxMessage = 200

// Message returns the beginning of what a server says about a refused request, in one
// line. Secrets are removed from it.
func Message(response *http.Response, secrets ...string) string {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<12))
	message := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "?")), " ")
	for _, secret := range secrets {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, "***")
		}
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
