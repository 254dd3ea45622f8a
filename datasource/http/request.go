package httpsource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	maxRedirects = 5

	// coarsestTime is how long the tags and times that servers derive from the times of
	// files may stay the same although a file has changed.
	coarsestTime = 2 * time.Second
)

// version is what is known of a body that was read.
type version struct {
	digest   [sha256.Size]byte
	etag     string
	modified string        // the field Last-Modified
	since    clock.Instant // when this digest was read first
	stable   bool          // it was read again coarsestTime after that, so that etag and modified identify it
	compared clock.Instant // when the body was read last
	trusted  time.Duration // how long after that etag and modified are believed; 0 if they were wrong once
}

// conditional says whether a request need not return a body that has the tag and the time of
// this version.
func (v *version) conditional(now clock.Instant) bool {
	return v != nil && v.stable && now.Sub(v.compared) < v.trusted
}

// answer is a successful answer to a request.
type answer struct {
	unchanged bool     // the body is the one of the version before
	data      []byte   // of a body that has changed
	from      *url.URL // where it was read, after redirects
	version   version
}

// Errors that a request may have, apart from those of the body.
var (
	errGone        = errors.New("410 Gone")
	errUnanswered  = errors.New("no answer")
	errRedirection = errors.New("redirects to a place that is not followed")
)

// contentError says that the answer is complete but is not a document. It is final until
// the answer changes.
type contentError struct{ text string }

func (e *contentError) Error() string { return e.text }

// newTransport returns the transport of the options, or a new one.
func (s *source) newTransport(oneRequestEach bool) http.RoundTripper {
	if s.opts.Transport != nil {
		return s.opts.Transport
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.opts.TLS.Clone(), ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: parallelRequests, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: s.opts.RequestTimeout,
		DisableKeepAlives: oneRequestEach,
	}
}

// get reads what is at a URL, unless it is the version that was read before.
func (f *follower) get(ctx context.Context, target *url.URL, before *version, maxSize int) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.RequestTimeout)
	defer cancel()
	condition := before
	if !before.conditional(f.opts.Clock.Now()) {
		condition = nil
	}
	response, from, err := f.send(ctx, f.transport, target, condition)
	if err == nil {
		defer response.Body.Close()
		var a answer
		if a, err = f.read(response, condition != nil, before, maxSize); err == nil {
			a.from = from
			return a, nil
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %v", errUnanswered, f.opts.RequestTimeout)
	}
	return answer{}, fmt.Errorf("httpsource: GET %s: %w", display(target), err)
}

// send sends a request, conditional on a version if one is given, and follows redirects.
// Credentials go to the source's own host. It uses a transport and no client, whose errors
// contain where redirects lead.
func (s *source) send(
	ctx context.Context, transport http.RoundTripper, target *url.URL, condition *version,
) (*http.Response, *url.URL, error) {
	for range maxRedirects + 1 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
		if err != nil {
			return nil, nil, errors.New("the URL is not valid")
		}
		if err := s.addFields(request, condition); err != nil {
			return nil, nil, err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errUnanswered, withoutURL(err))
		}
		if !isRedirect(response.StatusCode) {
			return response, target, nil
		}
		_ = response.Body.Close()
		next, err := target.Parse(response.Header.Get("Location"))
		if err != nil || response.Header.Get("Location") == "" || next.Host == "" ||
			next.Scheme != target.Scheme && next.Scheme != "https" {
			return nil, nil, fmt.Errorf("%s: %w: it must be a URL, and https if this one is", statusOf(response), errRedirection)
		}
		target = next
	}
	return nil, nil, fmt.Errorf("%w: more than %d redirects", errRedirection, maxRedirects)
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// addFields adds the conditions of a request and, if it is for the source's own host, the
// credentials.
func (s *source) addFields(request *http.Request, condition *version) error {
	if request.URL.Scheme == s.url.Scheme && request.URL.Host == s.url.Host {
		if err := s.addCredentials(request); err != nil {
			return err
		}
	}
	request.Header.Set("Cache-Control", "no-cache") // a cache in between asks the server
	if condition == nil {
		return nil
	}
	if condition.etag != "" {
		request.Header.Set("If-None-Match", condition.etag)
	}
	if condition.modified != "" {
		request.Header.Set("If-Modified-Since", condition.modified)
	}
	return nil
}

func (s *source) addCredentials(request *http.Request) error {
	if s.opts.Header != nil {
		fields, err := s.opts.Header()
		if err != nil {
			return fmt.Errorf("Options.Header: %w", err)
		}
		for name, values := range fields {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if s.user != nil {
		password, _ := s.user.Password()
		request.SetBasicAuth(s.user.Username(), password)
	}
	if s.opts.Token != nil {
		token, err := s.opts.Token()
		if err != nil {
			return fmt.Errorf("Options.Token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// withoutURL returns the reason of an error without the URL, whose query may be secret. The
// caller's transport may be a client.
func withoutURL(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// statusOf returns the status of an answer, with the words of the standard: those of the server may be anything.
func statusOf(response *http.Response) string {
	return fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

// read reads an answer.
func (f *follower) read(response *http.Response, conditional bool, before *version, maxSize int) (answer, error) {
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		switch {
		case before == nil || !before.stable:
			return answer{}, errors.New("304 Not Modified although nothing was read before")
		case !conditional:
			return answer{}, errors.New("304 Not Modified to a request without a condition: is it a cache that answers everything so?")
		}
		return answer{unchanged: true, version: *before}, nil
	case http.StatusGone:
		return answer{}, errGone
	case http.StatusNotFound:
		return answer{}, errors.New("404 Not Found: answer 410 Gone to remove a document")
	default:
		return answer{}, errors.New(statusOf(response))
	}
	data, err := body(response, maxSize)
	if err != nil {
		return answer{}, err
	}
	return f.compare(response, before, data), nil
}

// body reads the body of an answer. It returns an error if part of it is missing.
func body(response *http.Response, maxSize int) ([]byte, error) {
	if err := checkEncoding(response); err != nil {
		return nil, err
	}
	if response.ProtoMajor == 1 && response.ContentLength < 0 && len(response.TransferEncoding) == 0 && !response.Uncompressed {
		return nil, errors.New("the answer has neither a Content-Length nor chunks, so nobody can tell whether it is complete")
	}
	var data bytes.Buffer
	switch n, err := io.Copy(&data, io.LimitReader(response.Body, int64(maxSize)+1)); {
	case n > int64(maxSize):
		return nil, &contentError{fmt.Sprintf("it has more than %d bytes: make several documents of it", maxSize)}
	case err != nil:
		return nil, fmt.Errorf("the answer is not complete: %w", err)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil && kind == "text/html" {
		return nil, &contentError{"it is an HTML page, which is no document: is it a page of a proxy?"}
	}
	return data.Bytes(), nil
}

// checkEncoding returns an error if the body of an answer is encoded. Transports decode gzip.
func checkEncoding(response *http.Response) error {
	const longest = 40 // bytes of what the server says that are logged
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" {
		return fmt.Errorf("it is encoded as %q: serve it plain or with gzip", encoding[:min(len(encoding), longest)])
	}
	return nil
}

// compare compares a body with the version before. A tag and a time that stayed the same
// although the body has changed are not believed again.
func (f *follower) compare(response *http.Response, before *version, data []byte) answer {
	now := f.opts.Clock.Now()
	v := version{
		digest: sha256.Sum256(data), since: now, compared: now, trusted: f.around(f.opts.CompareInterval),
		etag: response.Header.Get("ETag"), modified: response.Header.Get("Last-Modified"),
	}
	if before != nil {
		wrong := before.stable && before.digest != v.digest && before.etag == v.etag && before.modified == v.modified
		if wrong || before.trusted == 0 {
			v.trusted = 0
		}
	}
	if before == nil || before.digest != v.digest {
		return answer{data: data, version: v}
	}
	v.since = before.since
	v.stable = now.Sub(v.since) >= coarsestTime
	return answer{unchanged: true, version: v}
}
