package adaptertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// httpClient is a client of a server under test, with connections of its own.
type httpClient struct {
	t    *testing.T
	url  string
	http *http.Client
}

func newHTTPClient(t *testing.T, url string, timeout time.Duration) *httpClient {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &httpClient{t, url, &http.Client{
		Timeout:       timeout,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// get makes a request. It may be called by any goroutine.
func (c *httpClient) get(path string, header ...string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, header...)
}

// do makes a request with header fields, names and values by turns. It may be called by any
// goroutine.
func (c *httpClient) do(method, path string, header ...string) answer {
	c.t.Helper()
	request := c.request(c.t.Context(), method, path, header...)
	response, err := c.http.Do(request)
	if !assert.NoError(c.t, err) {
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	assert.NoError(c.t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// served makes a request, and returns an error unless it is answered with 200.
func (c *httpClient) served(ctx context.Context, path string) error {
	response, err := c.http.Do(c.request(ctx, http.MethodGet, path))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return nethttp.StatusError(response.StatusCode)
	}
	return nil
}

func (c *httpClient) request(ctx context.Context, method, path string, header ...string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, http.NoBody)
	if !assert.NoError(c.t, err) {
		return request
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Add(header[i], header[i+1])
	}
	return request
}

// leave makes a request and disconnects when ready is closed.
func (c *httpClient) leave(path string, ready <-chan struct{}) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	request := c.request(ctx, http.MethodGet, path)
	done := make(chan struct{})
	go func() {
		select {
		case <-ready:
			cancel()
		case <-done:
		}
	}()
	response, err := c.http.Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	close(done)
	require.ErrorIs(c.t, err, context.Canceled, "the client should have left before it was answered")
}

// send writes a request as it stands here, which a client might not, and returns the status
// of the response, 0 if there is none.
func (c *httpClient) send(method, target string) int {
	c.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	require.NoError(c.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(c.t, conn.SetDeadline(time.Now().Add(c.http.Timeout)))
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method, target)
	require.NoError(c.t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
