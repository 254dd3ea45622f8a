package httpsource_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	httpsource "github.com/penstock-go/penstock/datasource/http"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/rules"
)

func TestDocumentIsNamedAfterTheLastPartOfThePath(t *testing.T) {
	for path, name := range map[string]string{
		"": "rules", "/": "rules", "/orders.yaml": "orders.yaml", "/shop/orders.yaml?v=1": "orders.yaml",
		"/shop/orders/": "orders", "/gr%C3%B6%C3%9Fe.yaml": "größe.yaml",
	} {
		s := newServer(t, serve(one))
		r := sourcetest.Follow(t, open(t, s.URL+path, quick()))
		r.AwaitDocuments(t, map[string]string{name: one})
		assert.True(t, r.Changes()[0].Complete, path)
	}
}

// Everything but a document and 410 leaves the rules as they are.
func TestAnswersThatAreNoDocumentKeepTheRules(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"not found":             {status(404), "404 Not Found: answer 410"},
		"forbidden":             {status(403), "403 Forbidden"},
		"unauthorized":          {status(401), "401 Unauthorized"},
		"too many requests":     {status(429), "429 Too Many Requests"},
		"internal error":        {status(500), "500 Internal Server Error"},
		"bad gateway":           {status(502), "502 Bad Gateway"},
		"no content":            {status(204), "204 No Content"},
		"partial content":       {status(206), "206 Partial Content"},
		"304 without a request": {status(304), "304 Not Modified although"},
		"body shorter than its length": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(two))
		}, "not complete: unexpected EOF"},
		"chunks without the last":   {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nflow: \r\n"), "not complete: unexpected EOF"},
		"neither length nor chunks": {raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nflow: []"), "neither a Content-Length nor chunks"},
		"gzip that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			data := compress(two)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(data[:len(data)-9])
		}, "not complete"},
		"unknown encoding": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte(two))
		}, `encoded as "br"`},
		"connection closed":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "no answer: EOF"},
		"no HTTP":                 {raw("SSH-2.0-OpenSSH\r\n"), "malformed HTTP"},
		"redirect in a circle":    {redirect("/orders.yaml"), "more than 5 redirects"},
		"redirect without target": {status(302), "302 Found: redirects to a place that is not followed"},
		"redirect to a file":      {redirect("file:///etc/passwd"), "not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, serve(one))
			r := sourcetest.Follow(t, open(t, s.URL+"/orders.yaml", quick()))
			r.AwaitDocuments(t, map[string]string{"orders.yaml": one})
			s.handle(test.handler)
			r.AwaitError(t, says("GET "+s.URL+"/orders.yaml: "))
			r.AwaitError(t, says(test.says))
			s.pass(t, 3)
			assert.Len(t, r.Changes(), 1)
			s.handle(serve(two))
			r.AwaitDocuments(t, map[string]string{"orders.yaml": two})
		})
	}
}

// A page of an error that comes with status 200, and what is too long, is a document with
// an error: its last good version stays.
func TestBadDocumentIsReportedOnce(t *testing.T) {
	bomb := compress(strings.Repeat("x", 32<<20))
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html>we are down</html>"))
		}, "HTML page"},
		"too long": {serve("#" + strings.Repeat("x", rules.MaxDocumentSize)), "more than 1048576 bytes"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for chunk := make([]byte, 1<<16); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 1048576 bytes"},
		"bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}, "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, serve(one))
			r := sourcetest.Follow(t, open(t, s.URL+"/a", quick()))
			r.AwaitDocuments(t, map[string]string{"a": one})
			s.handle(test.handler)
			require.ErrorContains(t, r.AwaitFault(t, "a"), test.says)
			s.pass(t, 3)
			assert.Len(t, r.Changes(), 2, "it is reported once")
			assert.Empty(t, r.Errors(), "the source is connected")
			s.handle(serve(one))
			require.Eventually(t, func() bool { return r.Fault("a") == nil }, sourcetest.Patience, time.Millisecond)
			assert.Equal(t, map[string]string{"a": one}, r.Documents())
		})
	}
}

func TestBadDocumentOfTheFirstReadIsReported(t *testing.T) {
	s := newServer(t, serve("#"+strings.Repeat("x", rules.MaxDocumentSize)))
	r := sourcetest.Follow(t, open(t, s.URL+"/a", quick()))
	require.ErrorContains(t, r.AwaitFault(t, "a"), "more than 1048576 bytes")
	assert.True(t, r.Changes()[0].Complete)
}

func TestLongestDocumentIsRead(t *testing.T) {
	longest := "#" + strings.Repeat("x", rules.MaxDocumentSize-1)
	s := newServer(t, serve(longest))
	sourcetest.Follow(t, open(t, s.URL+"/a", quick())).AwaitDocuments(t, map[string]string{"a": longest})
}

func TestCompressedDocumentIsRead(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compress(one))
	})
	sourcetest.Follow(t, open(t, s.URL+"/a", quick())).AwaitDocuments(t, map[string]string{"a": one})
}

func TestGoneRemovesTheDocument(t *testing.T) {
	s := newServer(t, serve(one))
	r := sourcetest.Follow(t, open(t, s.URL+"/a", quick()))
	r.AwaitDocuments(t, map[string]string{"a": one})
	s.handle(status(http.StatusGone))
	r.AwaitDocuments(t, map[string]string{})
	s.pass(t, 3)
	assert.Len(t, r.Changes(), 2)
	s.handle(serve(one))
	r.AwaitDocuments(t, map[string]string{"a": one})
	assert.Empty(t, r.Errors())

	s.handle(status(http.StatusGone))
	first := sourcetest.Follow(t, open(t, s.URL+"/a", quick()))
	first.AwaitDocuments(t, map[string]string{})
	assert.True(t, first.Changes()[0].Complete)
}

func TestSlowAnswersEndWithTheTimeout(t *testing.T) {
	for name, test := range map[string]func(w http.ResponseWriter){
		"no header": func(http.ResponseWriter) {},
		"no body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("flow: "))
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				test(w)
				<-r.Context().Done()
			})
			opts := quick()
			opts.RequestTimeout = 50 * time.Millisecond
			r := sourcetest.Follow(t, open(t, s.URL+"/a", opts))
			r.AwaitError(t, says("no answer within 50ms"))
			assert.Empty(t, r.Changes())
			opts.RequestTimeout = time.Minute
			s.handle(serve(one))
			sourcetest.Follow(t, open(t, s.URL+"/a", opts)).AwaitDocuments(t, map[string]string{"a": one})
		})
	}
}

func TestRunEndsWithinARequest(t *testing.T) {
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	sourcetest.Follow(t, open(t, s.URL, quick()))
	require.Eventually(t, func() bool { return s.requests.Load() > 0 }, sourcetest.Patience, time.Millisecond)
}

func TestRequestsAreConditionalOnceADocumentIsStable(t *testing.T) {
	for name, test := range map[string]struct {
		fields map[string]string
		sends  map[string]string
	}{
		"strong tag":    {map[string]string{"ETag": `"1"`}, map[string]string{"If-None-Match": `"1"`}},
		"weak tag":      {map[string]string{"ETag": `W/"1"`}, map[string]string{"If-None-Match": `W/"1"`}},
		"time":          {map[string]string{"Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT"}, map[string]string{"If-Modified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}},
		"none of these": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var requests record
			s := newServer(t, requests.wrap(func(w http.ResponseWriter, r *http.Request) {
				for field, value := range test.fields {
					w.Header().Set(field, value)
				}
				if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = w.Write([]byte(one))
			}))
			p := followPolls(t, false, s.URL+"/a")
			assert.Equal(t, "no-cache", requests.last().Get("Cache-Control"))
			p.next(1) // more than two seconds later: the version is stable now
			assert.Empty(t, requests.last().Get("If-None-Match")+requests.last().Get("If-Modified-Since"))
			for range 3 {
				p.next(1)
				for _, field := range []string{"If-None-Match", "If-Modified-Since"} {
					assert.Equal(t, test.sends[field], requests.last().Get(field))
				}
			}
			assert.Len(t, p.Changes(), 1)
			assert.Empty(t, p.Errors())
		})
	}
}

// Servers derive tags and times from those of files, in seconds. A file that is written
// twice within a second keeps both.
func TestChangeWithTheSameTagAndTimeIsSeen(t *testing.T) {
	var content atomic.Value
	content.Store(one)
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"same"`)
		http.ServeContent(w, r, "", time.Unix(1_800_000_000, 0), strings.NewReader(content.Load().(string)))
	})
	p := followPolls(t, false, s.URL+"/a")
	p.AwaitDocuments(t, map[string]string{"a": one})
	content.Store(two)
	p.next(1)
	p.AwaitDocuments(t, map[string]string{"a": two})
}

func TestNotModifiedBeforeAnythingWasReadIsAnError(t *testing.T) {
	s := newServer(t, status(http.StatusNotModified))
	r := sourcetest.Follow(t, open(t, s.URL+"/a", quick()))
	r.AwaitError(t, says("304 Not Modified although nothing was read before"))
	assert.Empty(t, r.Changes())
}

func TestCacheThatAnswersNotModifiedForEverIsAFailure(t *testing.T) {
	s := newServer(t, serve(one))
	p := followPolls(t, false, s.URL+"/a")
	p.next(2)
	s.handle(status(http.StatusNotModified))
	for range 8 { // of ten seconds
		p.next(1)
	}
	require.NotEmpty(t, p.Errors())
	require.ErrorContains(t, p.Errors()[0], "304 Not Modified to a request without a condition")
	assert.Equal(t, map[string]string{"a": one}, p.Documents())
}

// Files in images of containers often have one time, and versions of a rule one size.
func TestChangeThatTheServerHidesIsSeenWithinTheCompareInterval(t *testing.T) {
	for name, index := range map[string]bool{"document": false, "document of an index": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, content string) {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
				require.NoError(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
			}
			write("a.yaml", one)
			write("index.json", `{"documents": [{"name": "a.yaml"}]}`)
			var requests record
			s := newServer(t, requests.wrap(http.FileServer(http.Dir(dir)).ServeHTTP))
			address := s.URL + "/a.yaml"
			if index {
				address = s.URL + "/index.json"
			}
			p := followPolls(t, index, address)
			p.next(2)
			write("a.yaml", two)
			write("index.json", `{"documents": [{"name": "a.yaml"}]}`)
			p.next(1)
			require.Equal(t, map[string]string{"a.yaml": one}, p.Documents(), "the server says that nothing has changed")
			p.next(7) // polls of ten seconds: more than 5/4 of a minute
			require.Equal(t, map[string]string{"a.yaml": two}, p.Documents())

			// From now on the server is not believed.
			p.next(1)
			write("a.yaml", one)
			p.next(1)
			assert.Equal(t, map[string]string{"a.yaml": one}, p.Documents())
			assert.Empty(t, p.Errors())
		})
	}
}

func TestIndexThatTheServerHidesIsSeenWithinTheCompareInterval(t *testing.T) {
	var content atomic.Value
	content.Store(`{"documents": [{"name": "a.yaml"}, {"name": "b.yaml"}]}`)
	s := newServer(t, byPath(map[string]http.HandlerFunc{
		"/index.json": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(content.Load().(string)))
		},
		"/a.yaml": serve(one), "/b.yaml": serve(two),
	}))
	p := followPolls(t, true, s.URL+"/index.json")
	p.next(2)
	content.Store(`{"documents": [{"name": "a.yaml"}]}`)
	p.next(8)
	assert.Equal(t, map[string]string{"a.yaml": one}, p.Documents())
}

func TestCredentialsAreSentToTheHostOfTheURLOnly(t *testing.T) {
	var atHome, elsewhere record
	other := newServer(t, elsewhere.wrap(serve(one)))
	s := newServer(t, nil)
	s.handle(atHome.wrap(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, "/next", http.StatusFound)
			return
		}
		http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://evil:pass@", 1)+"/a", http.StatusTemporaryRedirect)
	}))
	opts := quick()
	opts.Token = func() (string, error) { return token, nil }
	opts.Header = func() (http.Header, error) { return http.Header{"x-api-key": {token}}, nil }
	r := sourcetest.Follow(t, open(t, s.URL+"/start", opts))
	r.AwaitDocuments(t, map[string]string{"start": one})
	assert.Equal(t, "Bearer "+token, atHome.last().Get("Authorization"))
	assert.Equal(t, token, atHome.last().Get("X-Api-Key"))
	assert.Empty(t, elsewhere.last().Get("Authorization"))
	assert.Empty(t, elsewhere.last().Get("X-Api-Key"))
}

func TestUserInTheURLIsSent(t *testing.T) {
	var requests record
	s := newServer(t, requests.wrap(serve(one)))
	url := strings.Replace(s.URL, "http://", "http://shop:pa%20ss@", 1)
	sourcetest.Follow(t, open(t, url+"/a", quick())).AwaitDocuments(t, map[string]string{"a": one})
	user, password, ok := (&http.Request{Header: requests.last()}).BasicAuth()
	assert.True(t, ok)
	assert.Equal(t, "shop pa ss", user+" "+password)
}

func TestFailingCredentialsAreReported(t *testing.T) {
	broken := errors.New("the vault is sealed")
	s := newServer(t, serve(one))
	for name, set := range map[string]func(*httpsource.Options){
		"Options.Token":  func(o *httpsource.Options) { o.Token = func() (string, error) { return "", broken } },
		"Options.Header": func(o *httpsource.Options) { o.Header = func() (http.Header, error) { return nil, broken } },
	} {
		opts := quick()
		set(&opts)
		r := sourcetest.Follow(t, open(t, s.URL+"/a", opts))
		r.AwaitError(t, func(err error) bool { return errors.Is(err, broken) && says(name)(err) })
		assert.Empty(t, r.Changes())
	}
	assert.Zero(t, s.requests.Load())
}

// Errors of requests name the URL, but neither its query nor where it redirects to.
func TestErrorsHaveNoQueries(t *testing.T) {
	bad := newServer(t, redirect("http://127.0.0.1:x/?key="+signature))
	r := sourcetest.Follow(t, open(t, bad.URL+"/a", quick()))
	r.AwaitError(t, says("not followed"))
	assert.NotContains(t, r.Errors()[0].Error(), signature)

	s := newServer(t, redirect("http://127.0.0.1:1/?key="+signature))
	for _, address := range []string{s.URL, "http://127.0.0.1:1"} {
		r := sourcetest.Follow(t, open(t, address+"/a?sig="+signature, quick()))
		r.AwaitError(t, says("GET "+address+"/a: no answer: dial tcp 127.0.0.1:1: "))
		for _, err := range r.Errors() {
			assert.NotContains(t, err.Error(), signature)
		}
	}
	_, err := httpsource.New("https://user:"+signature+"@exa mple.com/", httpsource.Options{})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), signature)
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(serve(one))
	defer server.Close()
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	opts := quick()
	opts.TLS = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	sourcetest.Follow(t, open(t, server.URL+"/a", opts)).AwaitDocuments(t, map[string]string{"a": one})

	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r := sourcetest.Follow(t, open(t, server.URL+"/a", quick()))
	r.AwaitError(t, says("certificate signed by unknown authority"))

	plain := newServer(t, serve(two))
	toPlain := httptest.NewTLSServer(redirect(plain.URL + "/a"))
	defer toPlain.Close()
	authorities.AddCert(toPlain.Certificate())
	r = sourcetest.Follow(t, open(t, toPlain.URL+"/a", opts))
	r.AwaitError(t, says("redirects to a place that is not followed"))
	assert.Zero(t, plain.requests.Load(), "https does not become http")
}

func TestTransportOfTheCallerIsUsed(t *testing.T) {
	opts := quick()
	opts.Transport = transport(func(_ *http.Request) (*http.Response, error) {
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Length", fmt.Sprint(len(one)))
		_, _ = answer.WriteString(one)
		return answer.Result(), nil
	})
	sourcetest.Follow(t, open(t, "http://nowhere.invalid/a", opts)).AwaitDocuments(t, map[string]string{"a": one})
}

// What a server says besides is not logged: it may be long, or secret.
func TestErrorsDoNotRepeatWhatTheServerSays(t *testing.T) {
	long := strings.Repeat("secret", 100_000)
	for says, response := range map[string]http.Response{
		"302 Found":  {StatusCode: http.StatusFound, Status: "302 " + long, Header: http.Header{}},
		"encoded as": {StatusCode: http.StatusOK, Status: "200 " + long, Header: http.Header{"Content-Encoding": {long}}},
		"502 Bad":    {StatusCode: http.StatusBadGateway, Status: "502 " + long, Header: http.Header{}},
	} {
		opts := quick()
		opts.Transport = transport(func(*http.Request) (*http.Response, error) {
			answer := response
			answer.Body = io.NopCloser(strings.NewReader(long))
			return &answer, nil
		})
		r := sourcetest.Follow(t, open(t, "http://nowhere.invalid/a", opts))
		r.AwaitError(t, func(err error) bool { return strings.Contains(err.Error(), says) && len(err.Error()) < 300 })
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestInvalidArgumentsAreErrors(t *testing.T) {
	someToken := func() (string, error) { return "", nil }
	for says, do := range map[string]func() (core.Source, error){
		`scheme of the URL is ""`: func() (core.Source, error) { return httpsource.New("example.com", httpsource.Options{}) },
		`scheme of the URL is "ftp"`: func() (core.Source, error) {
			return httpsource.NewIndex("ftp://example.com", httpsource.Options{})
		},
		"no host":          func() (core.Source, error) { return httpsource.New("https:///a", httpsource.Options{}) },
		"cannot be parsed": func() (core.Source, error) { return httpsource.New("https://a:b", httpsource.Options{}) },
		"beside a user": func() (core.Source, error) {
			return httpsource.New("https://u:p@a", httpsource.Options{Token: someToken})
		},
		"beside Transport": func() (core.Source, error) {
			return httpsource.New("https://a", httpsource.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Transport: http.DefaultTransport})
		},
		"MinBackoff 1m0s is longer": func() (core.Source, error) {
			return httpsource.New("https://a", httpsource.Options{MinBackoff: time.Minute, MaxBackoff: time.Second})
		},
		"CompareInterval is negative": func() (core.Source, error) {
			return httpsource.New("https://a", httpsource.Options{CompareInterval: -1})
		},
		"Options.Interval is negative": func() (core.Source, error) {
			return httpsource.New("https://a", httpsource.Options{Interval: -1})
		},
		"MaxDocuments is negative": func() (core.Source, error) {
			return httpsource.New("https://a", httpsource.Options{Interval: -1, MaxDocuments: -1})
		},
	} {
		source, err := do()
		require.ErrorContains(t, err, says)
		assert.Nil(t, source)
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// raw returns a handler that writes bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}
}

func compress(text string) []byte {
	var data bytes.Buffer
	w := gzip.NewWriter(&data)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return data.Bytes()
}
