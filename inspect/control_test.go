package inspect_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// operated is an engine with a breaker before "pay:charge", which an operator reaches.
type operated struct {
	t       *testing.T
	engine  *core.Engine
	handler http.Handler

	mu      sync.Mutex
	changes []string
}

func payRules() rules.Set {
	return rules.Set{
		Breaker: []breaker.Rule{
			{Name: "pay-errors", Resource: "pay:charge", Strategy: breaker.ErrorCount, Threshold: 2, OpenFor: time.Second, Probes: 1},
			{Name: "shadow", Resource: "mail:send", Threshold: 0.5, Shadow: true},
			{Name: "each", Match: "db:*", Threshold: 0.5},
		},
		Flow: []flow.Rule{{Name: "pay-rate", Resource: "pay:charge", Limit: 1000}},
	}
}

func newOperated(t *testing.T) *operated {
	t.Helper()
	o := &operated{t: t}
	o.engine = core.New(core.Config{
		Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler),
		Observer: core.Observer{StateChanged: func(c core.StateChange) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.changes = append(o.changes, c.Resource+" "+c.Rule+": "+c.From+" to "+c.To)
		}},
	})
	t.Cleanup(o.engine.Close)
	require.NoError(t, o.engine.Load(payRules()))
	o.handler = inspect.ControlHandler(o.engine, inspect.Options{})
	return o
}

// send sends a request to the handler and returns the status and the error in the body.
func (o *operated) send(request *http.Request) (status int, failure string) {
	o.t.Helper()
	if request.Host == "example.com" { // that of httptest
		request.Host = "127.0.0.1:6060"
	}
	recorder := httptest.NewRecorder()
	o.handler.ServeHTTP(recorder, request)
	var f inspect.Failure
	if recorder.Header().Get("Content-Type") == "application/json" {
		require.NoError(o.t, json.Unmarshal(recorder.Body.Bytes(), &f))
	}
	return recorder.Code, f.Error
}

// force sends the form in the body of a request.
func (o *operated) force(name, state string) (status int, failure string) {
	o.t.Helper()
	form := url.Values{"kind": {"breaker"}, "rule": {name}, "state": {state}}
	request := httptest.NewRequest(http.MethodPost, "/control", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return o.send(request)
}

// call makes a call that ends with err, and returns whether it passed.
func (o *operated) call(resource string, err error) bool {
	o.t.Helper()
	guard, refused := o.engine.Entry(o.t.Context(), resource)
	guard.Fail(err)
	guard.Exit()
	if refused != nil {
		require.ErrorIs(o.t, refused, core.ErrBlocked)
	}
	return refused == nil
}

func (o *operated) state(resource string) string {
	o.t.Helper()
	for _, of := range o.engine.Explain(resource) {
		if of.Kind == "breaker" {
			return of.State
		}
	}
	return "none"
}

func TestBreakerForcedOpenRefusesUntilItIsReleased(t *testing.T) {
	o := newOperated(t)
	require.True(t, o.call("pay:charge", nil))
	status, _ := o.force("pay-errors", "open")
	require.Equal(t, http.StatusNoContent, status)
	o.engine.Clock().(*clock.Virtual).Advance(time.Hour)
	_, err := o.engine.Entry(t.Context(), "pay:charge")
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, rule.Never, block.RetryAfter, "time alone does not close it")
	assert.Equal(t, rule.Unavailable, block.Reason)

	status, _ = o.force("pay-errors", "")
	require.Equal(t, http.StatusNoContent, status)
	assert.True(t, o.call("pay:charge", nil))
	assert.Equal(t, []string{
		"pay:charge pay-errors: closed to open", "pay:charge pay-errors: open to closed",
	}, o.changes)
}

func TestBreakerForcedClosedIgnoresFailuresUntilItIsReleased(t *testing.T) {
	o := newOperated(t)
	lost := errors.New("lost")
	status, _ := o.force("pay-errors", "closed")
	require.Equal(t, http.StatusNoContent, status)
	for range 10 {
		require.True(t, o.call("pay:charge", lost))
	}
	require.Equal(t, breaker.Closed, o.state("pay:charge"))
	status, _ = o.force("pay-errors", "")
	require.Equal(t, http.StatusNoContent, status)
	assert.True(t, o.call("pay:charge", lost), "what failed before does not count")
	assert.True(t, o.call("pay:charge", lost))
	assert.False(t, o.call("pay:charge", nil))
}

func TestOperatorClosesABreakerThatHasOpened(t *testing.T) {
	o := newOperated(t)
	lost := errors.New("lost")
	o.call("pay:charge", lost)
	o.call("pay:charge", lost)
	require.False(t, o.call("pay:charge", nil))
	status, _ := o.force("pay-errors", "closed")
	require.Equal(t, http.StatusNoContent, status)
	assert.True(t, o.call("pay:charge", lost))
}

func TestForcedStateOutlivesReloadsAndAppliesToNewResources(t *testing.T) {
	o := newOperated(t)
	require.True(t, o.call("db:read", nil))
	require.NoError(t, o.engine.Control(core.Scope{Kind: "breaker", Rule: "each"}, "open"))
	assert.False(t, o.call("db:read", nil))
	assert.False(t, o.call("db:write", nil), "a resource that was never called before")

	changed := payRules()
	changed.Breaker[2].Threshold = 0.9
	require.NoError(t, o.engine.Load(changed))
	assert.False(t, o.call("db:read", nil))
	assert.False(t, o.call("db:delete", nil))
	require.NoError(t, o.engine.Control(core.Scope{Kind: "breaker", Rule: "each"}, ""))
	for _, name := range []string{"db:read", "db:write", "db:delete", "db:new"} {
		assert.True(t, o.call(name, nil), name)
	}
}

func TestShadowBreakerForcedOpenRefusesNothing(t *testing.T) {
	o := newOperated(t)
	require.NoError(t, o.engine.Control(core.Scope{Kind: "breaker", Rule: "shadow"}, "open"))
	guard, err := o.engine.Entry(t.Context(), "mail:send")
	require.NoError(t, err)
	defer guard.Exit()
	assert.Equal(t, "shadow", guard.WouldBlock().Rule)
}

func TestControlRequestsThatAreRefused(t *testing.T) {
	o := newOperated(t)
	for _, test := range []struct {
		method, target string
		code           int
		message        string
	}{
		{http.MethodGet, "/control?kind=breaker&rule=pay-errors&state=open", http.StatusMethodNotAllowed, "only POST"},
		{http.MethodPut, "/control?kind=breaker&rule=pay-errors&state=open", http.StatusMethodNotAllowed, "only POST"},
		{http.MethodPost, "/control", http.StatusBadRequest, "kind is missing"},
		{http.MethodPost, "/control?rule=pay-errors&state=open", http.StatusBadRequest, "kind is missing"},
		{http.MethodPost, "/control?kind=breaker&rule=&state=open", http.StatusBadRequest, "rule is empty"},
		{http.MethodPost, "/control?kind=breaker", http.StatusBadRequest, "state is missing"},
		{http.MethodPost, "/control?kind=braker&state=open", http.StatusUnprocessableEntity, `"braker"`},
		{http.MethodPost, "/control?kind=breaker&state=off", http.StatusUnprocessableEntity, `"off"`},
		{http.MethodPost, "/control?kind=breaker&rule=pay-errors", http.StatusBadRequest, "state is missing"},
		{http.MethodPost, "/control?kind=breaker&name=pay-errors&state=open", http.StatusBadRequest, `"name" is not a field`},
		{http.MethodPost, "/control?kind=breaker&rule=pay-errors&rule=each&state=open", http.StatusBadRequest, "rule is given 2 times"},
		{http.MethodPost, "/control?kind=breaker&rule=%zz&state=open", http.StatusBadRequest, "invalid URL escape"},
		{http.MethodPost, "/control?kind=breaker&rule=nobody&state=open", http.StatusUnprocessableEntity, `breaker "nobody"`},
		{http.MethodPost, "/control?kind=braker&rule=pay-errors&state=open", http.StatusUnprocessableEntity, `braker`},
		{http.MethodPost, "/control?kind=breaker&rule=pay-errors&state=ajar", http.StatusUnprocessableEntity, `"ajar"`},
		{http.MethodPost, "/control?kind=breaker&rule=pay-errors&state=halfOpen", http.StatusUnprocessableEntity, `"halfOpen"`},
		{http.MethodPost, "/control?kind=flow&rule=pay-rate&state=open", http.StatusUnprocessableEntity, "flow"},
	} {
		status, failure := o.send(httptest.NewRequest(test.method, test.target, http.NoBody))
		assert.Equal(t, test.code, status, test.target)
		assert.Contains(t, failure, test.message, test.target)
	}
	assert.Equal(t, breaker.Closed, o.state("pay:charge"))
	assert.Empty(t, o.changes)
}

func TestControlRequestWhoseBodyIsNoFormIsRefused(t *testing.T) {
	o := newOperated(t)
	for contentType, body := range map[string]string{
		"application/json":                `{"rule": "pay-errors"}`,
		"multipart/form-data; boundary=x": "--x\r\nContent-Disposition: form-data; name=\"rule\"\r\n\r\npay-errors\r\n--x--\r\n",
		"":                                "rule=pay-errors",
	} {
		request := httptest.NewRequest(http.MethodPost, "/control?kind=breaker&state=open", strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		status, failure := o.send(request)
		assert.Equal(t, http.StatusUnsupportedMediaType, status, contentType)
		assert.Contains(t, failure, "application/x-www-form-urlencoded", contentType)
	}
	assert.Empty(t, o.changes, "the rule in the body is not overlooked, so that the whole kind is forced")
}

func TestStateOfAWholeKindIsForcedAndShown(t *testing.T) {
	o := newOperated(t)
	status, _ := o.send(httptest.NewRequest(http.MethodPost, "/control?kind=breaker&state=open", http.NoBody))
	require.Equal(t, http.StatusNoContent, status)
	for _, resource := range []string{"pay:charge", "db:read"} {
		assert.False(t, o.call(resource, nil), resource)
	}
	assert.Equal(t, []inspect.ForcedKind{{Kind: "breaker", State: "open"}}, inspect.StatusOf(o.engine).ForcedKinds)
	status, _ = o.send(httptest.NewRequest(http.MethodPost, "/control?kind=breaker&state=", http.NoBody))
	require.Equal(t, http.StatusNoContent, status)
	assert.True(t, o.call("pay:charge", nil))
	assert.Empty(t, inspect.StatusOf(o.engine).ForcedKinds)
}

func TestControlRequestOfABrowserOnAnotherSiteIsRefused(t *testing.T) {
	o := newOperated(t)
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		request := httptest.NewRequest(http.MethodPost, "/control?kind=breaker&rule=pay-errors&state=open", http.NoBody)
		request.Header.Set(header, value)
		status, _ := o.send(request)
		assert.Equal(t, http.StatusForbidden, status, header)
	}
	assert.Equal(t, breaker.Closed, o.state("pay:charge"))
	assert.True(t, o.call("pay:charge", nil))
}

func TestControlRequestThatIsTooLongIsRefused(t *testing.T) {
	o := newOperated(t)
	status, failure := o.force("pay-errors", strings.Repeat("x", 1<<17))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, failure, "too large")
}

func TestControlOfAClosedEngineIsAnError(t *testing.T) {
	o := newOperated(t)
	o.engine.Close()
	assert.ErrorIs(t, o.engine.Control(core.Scope{Kind: "breaker", Rule: "pay-errors"}, "open"), core.ErrClosed)
}
