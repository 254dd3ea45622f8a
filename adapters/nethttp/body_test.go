package nethttp_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// closableBody is a body that notes that it was closed.
type closableBody struct {
	io.Reader
	closed bool
}

func (b *closableBody) Close() error {
	b.closed = true
	return nil
}

func TestBufferedBodyReadsLikeTheOriginal(t *testing.T) {
	original := &closableBody{Reader: strings.NewReader("an order")}
	request := httptest.NewRequest(http.MethodPost, "/", original)
	request.ContentLength = 8
	nethttp.BufferBody(request, 8)
	assert.Zero(t, original.Reader.(*strings.Reader).Len(), "it was read")
	body, err := io.ReadAll(request.Body)
	require.NoError(t, err)
	assert.Equal(t, "an order", string(body))
	require.NoError(t, request.Body.Close())
	assert.True(t, original.closed)
}

func TestTruncatedBodyReturnsTheErrorToTheHandler(t *testing.T) {
	lost := errors.New("lost")
	request := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("an or"), errorReader{lost}))
	request.ContentLength = 8
	nethttp.BufferBody(request, 8)
	body, err := io.ReadAll(request.Body)
	require.ErrorIs(t, err, lost)
	assert.Equal(t, "an or", string(body))
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestBodiesThatAreNotBuffered(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"too long":                 func(r *http.Request) { r.ContentLength = 9 },
		"none":                     func(r *http.Request) { r.ContentLength = 0 },
		"of unknown length":        func(r *http.Request) { r.ContentLength = -1 },
		"of HTTP/2":                func(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 2, 0 },
		"of a client that waits":   func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"when nothing may be read": func(*http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.NewReader([]byte("an order"))
			request := httptest.NewRequest(http.MethodPost, "/", data)
			change(request)
			limit := int64(8)
			if name == "when nothing may be read" {
				limit = 0
			}
			nethttp.BufferBody(request, limit)
			assert.Equal(t, 8, data.Len())
		})
	}
}
