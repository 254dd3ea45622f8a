package console_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
)

// Two hundred streams are more than the console serves: the last ones are told to come later, and there is
// space again when the others are gone.
func TestTwoHundredStreamsAreTooMany(t *testing.T) {
	address := serve(t, console.Options{Engine: newEngine(t, ordersRule)})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func(ctx context.Context) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/live?screen=overview", http.NoBody)
		if err != nil {
			return nil, err
		}
		return client.Do(request)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	for range 200 {
		response, err := open(ctx)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		if response.StatusCode == http.StatusOK {
			opened++
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		assert.NotEmpty(t, response.Header.Get("Retry-After"))
	}
	assert.Equal(t, 128, opened)
	code, _, _ := send(t, http.MethodGet, address+"/api/explain?resource=orders", "", nil)
	assert.Equal(t, http.StatusOK, code, "other requests are answered")
	cancel()
	require.Eventually(t, func() bool {
		response, err := open(t.Context())
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
}

// Somebody who opens pages without end takes them from nobody else.
func TestNobodyTakesTheStreamsOfOthers(t *testing.T) {
	address := serve(t, console.Options{Engine: newEngine(t, ordersRule), Authorize: func(r *http.Request) (console.Identity, console.Role) {
		return console.Identity(r.Header.Get("X-Who")), console.Viewer
	}})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func(who string, n int) (opened int) {
		for range n {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/live?screen=overview", http.NoBody)
			require.NoError(t, err)
			request.Header.Set("X-Who", who)
			response, err := client.Do(request)
			require.NoError(t, err)
			t.Cleanup(func() { _ = response.Body.Close() })
			if response.StatusCode == http.StatusOK {
				opened++
			}
		}
		return opened
	}
	assert.Equal(t, 64, open("mallory", 150))
	assert.Equal(t, 3, open("alice", 3))
}

// A page whose browser does not read any longer, and says nothing, is dropped within seconds: what it held is free.
func TestPageThatIsNotReadIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe() // without a buffer: who does not read holds up the writer
		listener := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
		listener.conn <- there
		server := &http.Server{Handler: console.Handler(console.Options{Engine: newEngine(t, ordersRule)}), ReadHeaderTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.WriteString(here, "GET /api/live?screen=overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		reader := bufio.NewReader(here)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		_, err = bufio.NewReader(response.Body).ReadString('\n')
		require.NoError(t, err)
		time.Sleep(30 * time.Second) // nobody reads
		_, err = io.Copy(io.Discard, reader)
		require.NoError(t, err, "the server has closed the connection")
		_ = response.Body.Close()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// A request whose body does not come is given up, and its connection closed.
func TestBodyThatDoesNotComeIsGivenUp(t *testing.T) {
	for _, path := range []string{"check", "session", "nothing"} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			listener := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
			listener.conn <- there
			server := &http.Server{Handler: console.Handler(console.Options{Engine: newEngine(t, ordersRule)}), ReadHeaderTimeout: time.Minute}
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err := io.WriteString(here, "POST /api/"+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
			require.NoError(t, err)
			began := time.Now()
			_, err = io.Copy(io.Discard, here)
			require.NoError(t, err, "the server has closed the connection")
			assert.LessOrEqual(t, time.Since(began), 40*time.Second)
			require.NoError(t, server.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
		})
	}
}

// oneConn is a listener that accepts the connections that it is given.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error { close(l.closed); return nil }

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
