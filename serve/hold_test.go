package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/serve"
)

// holding asks a [serve.Hold].
type holding struct {
	t *testing.T
	h *serve.Hold
}

// post returns the status and the body of an answer.
func (h holding) post(path, body string) (int, string) {
	h.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	h.h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// begin begins a call, and returns its id.
func (h holding) begin(body string) string {
	h.t.Helper()
	status, answer := h.post("/hold", body)
	require.Equal(h.t, http.StatusOK, status, answer)
	var got struct {
		ID     string
		MaxAge float64
	}
	require.NoError(h.t, json.Unmarshal([]byte(answer), &got))
	if got.ID != "" {
		assert.InDelta(h.t, 60, got.MaxAge, 0)
	}
	return got.ID
}

func (h holding) end(id string) int {
	h.t.Helper()
	status, _ := h.post("/release", `{"id": "`+id+`"}`)
	return status
}

func (h holding) refused(body string) bool {
	h.t.Helper()
	status, answer := h.post("/hold", body)
	assert.Contains(h.t, []int{200, 429, 503}, status, answer)
	return status != http.StatusOK
}

func TestHeldCallKeepsItsPlaceUntilItsReleaseOrItsMaxAge(t *testing.T) {
	engine, now := newEngine(t, "isolation: [{resource: render, limit: 1, maxAge: 1m}]")
	h := holding{t, serve.NewHold(engine, serve.HoldOptions{})}
	first := h.begin(`{"resource": "render"}`)
	require.NotEmpty(t, first)
	assert.True(t, h.refused(`{"resource": "render"}`))
	assert.Equal(t, http.StatusNoContent, h.end(first))
	second := h.begin(`{"resource": "render"}`)
	assert.NotEqual(t, first, second)
	assert.Equal(t, http.StatusNoContent, h.end(first), "a release may be repeated")
	assert.True(t, h.refused(`{"resource": "render"}`), "and ends no other call")
	now.Advance(2 * time.Minute)
	third := h.begin(`{"resource": "render"}`)
	assert.Equal(t, http.StatusNoContent, h.end(second), "it has ended already")
	assert.True(t, h.refused(`{"resource": "render"}`))
	assert.Equal(t, http.StatusNoContent, h.end(third))
}

func TestHeldCallsAreCountedByTheirAttributesAndTokens(t *testing.T) {
	engine, _ := newEngine(t, `
hotParam:
  - {resource: render, param: user, concurrency: 1, maxAge: 1m}
  - {resource: open, param: ip, limit: 2}
  - {resource: net, param: ipPrefix, limit: 1}
flow: [{resource: tokens, limit: 10}, {resource: web, origin: web, limit: 1}]
`)
	h := holding{t, serve.NewHold(engine, serve.HoldOptions{})}
	h.begin(`{"resource": "render", "attributes": {"user": "a"}}`)
	h.begin(`{"resource": "render", "attributes": {"user": "b"}}`)
	assert.True(t, h.refused(`{"resource": "render", "attributes": {"user": "a"}}`))
	for body, passed := range map[string]int{
		`{"resource": "open", "attributes": {"ip": "192.0.2.1"}}`:           2,
		`{"resource": "open", "attributes": {"ip": "::ffff:192.0.2.7"}}`:    2,
		`{"resource": "net", "attributes": {"ip": "2001:db8::1"}}`:          1,
		`{"resource": "tokens", "tokens": 4}`:                               2,
		`{"resource": "web", "origin": "web"}`:                              1,
		`{"resource": "elsewhere", "attributes": null, "origin": "nobody"}`: 9,
	} {
		for range passed {
			assert.Empty(t, h.begin(body), "no rule counts it as under way")
		}
		if status, answer := h.post("/hold", body); passed < 9 {
			assert.Equal(t, http.StatusTooManyRequests, status, body)
			assert.Contains(t, answer, "quota-exceeded")
		}
	}
}

func TestHoldAnswersWhatMakesNoSenseAndTakesNothing(t *testing.T) {
	engine, _ := newEngine(t, "isolation: [{resource: render, limit: 1, maxAge: 1m}]")
	h := holding{t, serve.NewHold(engine, serve.HoldOptions{MaxAttributes: 1})}
	other := holding{t, serve.NewHold(engine, serve.HoldOptions{})}
	id := other.begin(`{"resource": "render"}`)
	for body, want := range map[string]int{
		``: 400, `{`: 400, `[]`: 400, `{}`: 400, `{"resource": ""}`: 400, `{"resource": 7}`: 400,
		`{"resorce": "render"}`: 400, `{"resource": "render", "tokens": 0}`: 400, `{"resource": "render", "tokens": -1}`: 400,
		`{"resource": "render", "tokens": 2147483648}`: 400, `{"resource": "render", "tokens": 18446744073709551615}`: 400,
		`{"resource": "render"} {"resource": "render"}`: 400, "{\"resource\": \"render\xff\"}": 400,
		`{"resource": "render", "attributes": {"a": "1", "b": "2"}}`: 400, `{"resource": "render", "attributes": {"a": 1}}`: 400,
		`{"resource": "` + strings.Repeat("a", 64<<10) + `"}`: 413,
	} {
		status, answer := h.post("/hold", body)
		assert.Equal(t, want, status, body)
		assert.Contains(t, answer, "penstock: ", body)
	}
	assert.Equal(t, 404, h.end(id), "it is another server's")
	for _, wrong := range []string{"", "a", id[1:], id + "A", id[:len(id)-1] + "/", strings.Repeat("A", 1000)} {
		assert.Equal(t, 400, h.end(wrong), wrong)
	}
	assert.Equal(t, http.StatusNoContent, other.end(id))
	assert.NotEmpty(t, h.begin(`{"resource": "render"}`))
}

func TestHoldIsForItsClientsOnly(t *testing.T) {
	engine, _ := newEngine(t, "flow: []")
	h := serve.NewHold(engine, serve.HoldOptions{Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, test := range []struct {
		method, path, from, media string
		want                      int
	}{
		{"POST", "/hold", "10.0.0.1:1", "application/json", 200},
		{"POST", "/hold", "192.0.2.1:1", "application/json", 403},
		{"POST", "/hold", "", "application/json", 403},
		{"POST", "/hold", "10.0.0.1:1", "text/plain", 415},
		{"POST", "/hold", "10.0.0.1:1", "", 415},
		{"GET", "/hold", "10.0.0.1:1", "application/json", 405},
		{"POST", "/", "10.0.0.1:1", "application/json", 404},
	} {
		r := httptest.NewRequest(test.method, test.path, strings.NewReader(`{"resource": "a"}`))
		r.RemoteAddr = test.from
		r.Header.Set("Content-Type", test.media)
		r.Header.Set("X-Forwarded-For", "10.0.0.1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, test.want, w.Code, test)
	}
}

func TestHeldCallsAreBounded(t *testing.T) {
	engine, now := newEngine(t, "isolation: [{resource: render, limit: 100, maxAge: 1m}]")
	h := holding{t, serve.NewHold(engine, serve.HoldOptions{MaxHolds: 2})}
	h.begin(`{"resource": "render"}`)
	h.begin(`{"resource": "render"}`)
	assert.True(t, h.refused(`{"resource": "render"}`))
	now.Advance(2 * time.Minute)
	h.begin(`{"resource": "render"}`)
}

func TestCallOfAProgramThatHasGoneIsNotHeld(t *testing.T) {
	engine, _ := newEngine(t, "isolation: [{resource: render, limit: 1, maxAge: 1m}]")
	h := holding{t, serve.NewHold(engine, serve.HoldOptions{})}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/hold", strings.NewReader(`{"resource": "render"}`))
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("Content-Type", "application/json")
	h.h.ServeHTTP(httptest.NewRecorder(), r)
	assert.NotEmpty(t, h.begin(`{"resource": "render"}`), "the place is free")
}
