package adaptertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func httpStreamTests() []httpTest {
	return []httpTest{
		{"flushes arrive, and the call lasts to the end of the stream", []Feature{Streaming}, flushesArrive},
		{"streams that clients leave end without a failure", []Feature{Streaming}, streamsThatClientsLeave},
		{"a connection can be taken over", []Feature{Hijacking}, connectionCanBeTakenOver},
		{"large bodies arrive whole", nil, largeBodiesArriveWhole},
	}
}

func flushesArrive(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	engine := p.NewEngine(t)
	seen := make(chan struct{})
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		return x.Stream(http.StatusOK, func(w StreamWriter) error {
			for event := range 3 {
				if _, err := fmt.Fprintf(writer{w}, "event %d\n", event); err != nil {
					return err
				}
				if err := w.Flush(); err != nil {
					return err
				}
				hold(t, seen) // the client has it before the next one
			}
			return nil
		})
	})
	response, err := c.http.Do(c.request(t.Context(), http.MethodGet, "/orders/7"))
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for event := range 3 {
		line, err := lines.ReadString('\n')
		assert.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("event %d\n", event), line)
		assert.EqualValues(t, 1, totals(engine, h.orders()).InFlight, "the call lasts")
		select {
		case seen <- struct{}{}:
		case <-time.After(h.Timeout):
			t.Fatal("the stream does not go on")
		}
	}
	rest, err := io.ReadAll(lines)
	assert.NoError(t, err)
	assert.Empty(t, rest)
	p.requireOutcome(t, h.Timeout, Succeeded)
}

// writer is a StreamWriter for package fmt.
type writer struct{ StreamWriter }

func (w writer) Write(p []byte) (int, error) { return w.WriteString(string(p)) }

func streamsThatClientsLeave(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	begun := make(chan struct{})
	chunk := strings.Repeat("x", 64<<10)
	h.serveOrders(t, p.NewEngine(t), Options{}, func(x Exchange) error {
		return x.Stream(http.StatusOK, func(w StreamWriter) error {
			for event := 0; ; event++ { // until the connection takes no more
				if _, err := w.WriteString(chunk); err != nil {
					return nil
				}
				if err := w.Flush(); err != nil {
					return nil
				}
				if event == 0 {
					close(begun)
				}
			}
		})
	}).leave("/orders/7", begun)
	require.Eventually(t, func() bool { return len(p.Outcomes()) > 0 }, h.Timeout, interval, "the call should have ended")
	assert.NotEqual(t, Failed, p.Outcomes()[0])
}

func connectionCanBeTakenOver(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	engine := p.NewEngine(t)
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		return x.Hijack(func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, "echo "+line)
			}
		})
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(h.Timeout)))
	_, err = io.WriteString(conn, "GET /orders/7 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	lines := bufio.NewReader(conn)
	response, err := http.ReadResponse(lines, nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	for _, word := range []string{"one\n", "two\n"} {
		_, err = io.WriteString(conn, word)
		require.NoError(t, err)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "echo "+word, line)
		assert.EqualValues(t, 1, totals(engine, h.orders()).InFlight, "the call lasts as long as the connection")
	}
	require.NoError(t, conn.Close())
	p.requireOutcome(t, h.Timeout, Succeeded)
}

func largeBodiesArriveWhole(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	body := strings.Repeat("0123456789", 200_000)
	c := h.serve(t, Server{
		Guards: []Guard{{Engine: engine}},
		Routes: []Route{{http.MethodPost, "/orders", func(x Exchange) error {
			read, err := x.Body()
			if err != nil {
				return err
			}
			return x.Respond(http.StatusOK, string(read))
		}}},
	})
	response, err := c.http.Post(c.url+"/orders", "text/plain", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	echoed, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.True(t, body == string(echoed), "the body has changed: %d bytes", len(echoed)) //nolint:testifylint // too long to print
}
