package penstockgin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// leave makes a request and leaves when ready is closed.
func leave(t *testing.T, server *httptest.Server, ready <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/7", http.NoBody)
	require.NoError(t, err)
	go func() {
		<-ready
		cancel()
	}()
	response, err := server.Client().Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorAfterTheClientDisconnectedIsNotAFailure(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, answer := range map[string]gin.HandlerFunc{
		"error with a status": func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadGateway, errors.New("lost")) },
		"panic to abort":      func(*gin.Context) { panic(http.ErrAbortHandler) },
		"body that cannot be written": func(c *gin.Context) {
			for len(c.Errors) == 0 { // until the connection takes no more
				c.JSON(http.StatusOK, long)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			here := make(chan struct{})
			server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
				close(here)
				<-c.Request.Context().Done()
				answer(c)
			}))
			leave(t, server, here)
			assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func TestConnectionResetDuringTheResponseIsNotAFailure(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	begun := make(chan struct{})
	long := strings.Repeat("x", 1<<20)
	server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		c.JSON(http.StatusOK, long)
		close(begun)
		for len(c.Errors) == 0 {
			c.JSON(http.StatusOK, long)
		}
	}))
	leave(t, server, begun)
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

func TestFailureOptionDecidesWhatIsAFailure(t *testing.T) {
	type ending struct {
		status int
		err    error
	}
	lost := errors.New("lost")
	var seen []ending
	options := penstockgin.Options{Failure: func(status int, err error) bool {
		seen = append(seen, ending{status, err})
		return status == http.StatusNotFound
	}}
	engine, _ := newEngine(t, core.Config{})
	answers := []gin.HandlerFunc{
		func(*gin.Context) {},
		func(c *gin.Context) { c.Status(http.StatusNotFound) },
		func(c *gin.Context) { _ = c.AbortWithError(http.StatusNotFound, lost) },
		func(c *gin.Context) { c.Status(http.StatusInternalServerError) },
	}
	next := 0
	handler := router(engine, options, func(c *gin.Context) {
		answers[next](c)
	})
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	for next = range answers {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers = append(answers, func(c *gin.Context) {
		cancel()
		c.Status(http.StatusInternalServerError)
	})
	next++
	handler.ServeHTTP(httptest.NewRecorder(), request.WithContext(ctx))
	require.Len(t, seen, 5)
	assert.Equal(t, []ending{{200, nil}, {404, nil}}, seen[:2])
	assert.Equal(t, 404, seen[2].status)
	require.ErrorIs(t, seen[2].err, lost)
	assert.Equal(t, []ending{{500, nil}, {500, nethttp.ErrCanceled}}, seen[3:])
	assert.EqualValues(t, 2, adaptertest.RequireEnded(t, engine, orders, 5).Failed)
}

func TestPanicInTheFailureOptionEndsTheCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	handler := router(engine, penstockgin.Options{Failure: func(int, error) bool { panic("no opinion") }}, ok)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
	assert.Equal(t, http.StatusOK, response.Code, "it was sent before")
	assert.Zero(t, engine.Resource(orders).Snapshot().InFlight)
}
