package inspect_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/inspect"
)

// controlled sends a request to a handler with options, and returns the status.
func controlled(t *testing.T, host, authorization string, options inspect.Options) int {
	t.Helper()
	o := newOperated(t)
	request := httptest.NewRequest(http.MethodPost, "/control?kind=breaker&rule=pay-errors&state=open", http.NoBody)
	request.Host = host
	// As a browser sends them for a page of that host.
	request.Header.Set("Origin", "http://"+host)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	inspect.ControlHandler(o.engine, options).ServeHTTP(recorder, request)
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.Equal(t, recorder.Code == http.StatusNoContent, len(o.changes) > 0, "what is refused changes nothing")
	return recorder.Code
}

func TestControlRequestForAnotherHostIsRefused(t *testing.T) {
	for _, host := range []string{
		"evil.example", "evil.example:6060", "", ":6060", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost",
		"ops.internal.evil.example", "2130706433", "[evil.example]", "127.0.0.1:6060.evil.example", "ops.internal@evil.example",
	} {
		assert.Equal(t, http.StatusForbidden, controlled(t, host, "", inspect.Options{}), host)
		assert.Equal(t, http.StatusForbidden, controlled(t, host, "", inspect.Options{Hosts: []string{"ops.internal"}}), host)
		assert.Equal(t, http.StatusForbidden, controlled(t, host, "Bearer secret", inspect.Options{Tokens: []string{"secret"}}), host)
	}
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1:6060", "localhost", "LOCALHOST:6060", "localhost.", "[::1]", "[::1]:6060", "10.0.0.7:80",
	} {
		assert.Equal(t, http.StatusNoContent, controlled(t, host, "", inspect.Options{}), host)
	}
	for _, host := range []string{"ops.internal", "Ops.Internal:6060", "ops.internal.", "127.0.0.1"} {
		assert.Equal(t, http.StatusNoContent, controlled(t, host, "", inspect.Options{Hosts: []string{"other", "OPS.internal."}}), host)
	}
}

func TestControlTokenIsRequired(t *testing.T) {
	const host = "127.0.0.1:6060"
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer secre", "Bearer secrets", "Basic secret", "secret"} {
		assert.Equal(t, http.StatusUnauthorized, controlled(t, host, authorization, inspect.Options{Tokens: []string{"secret", "next"}}), authorization)
		assert.Equal(t, http.StatusUnauthorized, controlled(t, host, authorization, inspect.Options{Tokens: []string{""}}), authorization)
		assert.Equal(t, http.StatusUnauthorized, controlled(t, host, authorization, inspect.Options{Tokens: []string{}}), authorization)
	}
	for _, authorization := range []string{"Bearer secret", "bearer secret", "Bearer next"} {
		assert.Equal(t, http.StatusNoContent, controlled(t, host, authorization, inspect.Options{Tokens: []string{"secret", "next"}}), authorization)
	}
}
