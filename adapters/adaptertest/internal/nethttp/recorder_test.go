package nethttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

func TestEventsAreFlushedWhileTheHandlerRuns(t *testing.T) {
	for name, flush := range map[string]func(http.ResponseWriter) error{
		"by assertion": func(w http.ResponseWriter) error {
			w.(http.Flusher).Flush()
			return nil
		},
		"by controller": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			seen := make(chan struct{})
			server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for event := range 3 {
					_, _ = fmt.Fprintf(w, "data: %d\n\n", event)
					assert.NoError(t, flush(w))
					<-seen // the client has it before the handler goes on
				}
			}))
			response, err := server.Client().Get(server.URL + "/orders/7")
			require.NoError(t, err)
			defer response.Body.Close()
			lines := bufio.NewReader(response.Body)
			for event := range 3 {
				line, err := lines.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("data: %d\n", event), line)
				_, err = lines.ReadString('\n')
				require.NoError(t, err)
				assert.EqualValues(t, 1, totals(engine, orders).InFlight)
				seen <- struct{}{}
			}
			assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func TestConnectionCanBeHijacked(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"by assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return w.(http.Hijacker).Hijack()
		},
		"by controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				conn, buffer, err := hijack(w)
				if assert.NoError(t, err) {
					defer func() { _ = conn.Close() }()
					_, _ = buffer.WriteString("HTTP/1.1 418 Mine\r\nContent-Length: 0\r\n\r\n")
					_ = buffer.Flush()
				}
			}))
			assert.Equal(t, http.StatusTeapot, get(t, server, "/orders/7").status)
			assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

// countingWriter counts what reaches the ReadFrom of the original.
type countingWriter struct {
	http.ResponseWriter
	copied *int64
}

func (w countingWriter) ReadFrom(source io.Reader) (int64, error) {
	n, err := w.ResponseWriter.(io.ReaderFrom).ReadFrom(source)
	*w.copied += n
	return n, err
}

func TestCopyingReachesTheReaderFromOfTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 10_000)
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	engine, _ := newEngine(t, core.Config{})
	guarded := guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, file)
	})
	var copied int64
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(countingWriter{w, &copied}, r)
	}))
	assert.Equal(t, content, get(t, server, "/orders/7").body)
	adaptertest.RequireEnded(t, engine, orders, 1)
	assert.EqualValues(t, len(content), copied)
}

func TestStringsAreWrittenWithoutCopying(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		n, err := w.(io.StringWriter).WriteString("text")
		assert.Equal(t, 4, n)
		assert.NoError(t, err)
		w.WriteHeader(http.StatusBadGateway)
	}))
	assert.Equal(t, "text", get(t, server, "/orders/7").body)
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed, "the string came first, with a 200")
}

func TestControllerReachesDeadlines(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		controller := http.NewResponseController(w)
		assert.NoError(t, controller.SetWriteDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, controller.SetReadDeadline(time.Now().Add(time.Hour)))
		assert.NoError(t, controller.EnableFullDuplex())
	}))
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7").status)
}

// Writers that can do some of it, as those of other middlewares.
type (
	flusherOnly struct {
		http.ResponseWriter
		http.Flusher
	}
	hijackerOnly struct {
		http.ResponseWriter
		http.Hijacker
	}
	plainWriter struct{ http.ResponseWriter }
)

func TestWriterHasTheInterfacesOfTheOriginal(t *testing.T) {
	for _, test := range []struct {
		name            string
		limit           func(http.ResponseWriter) http.ResponseWriter
		flushes, hijack bool
	}{
		{"all", func(w http.ResponseWriter) http.ResponseWriter { return w }, true, true},
		{"flusher", func(w http.ResponseWriter) http.ResponseWriter { return flusherOnly{w, w.(http.Flusher)} }, true, false},
		{"hijacker", func(w http.ResponseWriter) http.ResponseWriter { return hijackerOnly{w, w.(http.Hijacker)} }, false, true},
		{"none", func(w http.ResponseWriter) http.ResponseWriter { return plainWriter{w} }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			guarded := guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
				_, flushes := w.(http.Flusher)
				_, hijacks := w.(http.Hijacker)
				assert.Equal(t, test.flushes, flushes)
				assert.Equal(t, test.hijack, hijacks)
				if !flushes {
					assert.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
				}
				if !hijacks {
					_, _, err := http.NewResponseController(w).Hijack()
					assert.ErrorIs(t, err, http.ErrNotSupported)
					ok(w, r)
					return
				}
				conn, _, err := w.(http.Hijacker).Hijack()
				if assert.NoError(t, err) {
					defer func() { _ = conn.Close() }()
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				guarded.ServeHTTP(test.limit(w), r)
			}))
			assert.Equal(t, "ok", get(t, server, "/orders/7").body)
		})
	}
}

func TestGuardWorksOverHTTP2(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1))
	server := httptest.NewUnstartedServer(guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, hijacks := w.(http.Hijacker)
		assert.False(t, hijacks)
		ok(w, r)
		w.(http.Flusher).Flush()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	assert.Equal(t, "ok", get(t, server, "/orders/7").body)
	assert.Equal(t, http.StatusTooManyRequests, get(t, server, "/orders/7").status)
}
