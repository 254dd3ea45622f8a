package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
)

// post sends the fields in the query of a request.
func (o *operated) post(query string) (status int, failure string) {
	o.t.Helper()
	return o.send(httptest.NewRequest(http.MethodPost, "/control?"+query, http.NoBody))
}

func TestRulesAreSwitchedOffAndShownSo(t *testing.T) {
	o := newOperated(t)
	require.NoError(t, o.engine.Control(core.Scope{Kind: "breaker", Rule: "pay-errors"}, "open"))
	require.False(t, o.call("pay:charge", nil))
	for scope, want := range map[string]inspect.Forced{
		"rule=pay-errors":              {Kind: "breaker", Rule: "pay-errors"},
		"kind=breaker&rule=pay-errors": {Kind: "breaker", Rule: "pay-errors"},
		"kind=breaker":                 {Kind: "breaker"},
		"resource=pay:charge":          {Resource: "pay:charge"},
		"engine=true":                  {},
	} {
		status, failure := o.post(scope + "&switch=off&for=10m&by=alice&reason=wrong%1b[31m%0alimit")
		require.Equal(t, http.StatusNoContent, status, failure)
		require.True(t, o.call("pay:charge", nil), scope)
		now := time.Unix(1_000_000, 0).UTC()
		want.State, want.By, want.Reason, want.Since, want.Until = "off", "alice at 192.0.2.1", "wrong [31m limit", now, now.Add(10*time.Minute)
		found := inspect.StatusOf(o.engine)
		assert.Equal(t, []inspect.Forced{want}, found.Switches)
		assert.Equal(t, "pay-errors", found.Forced[0].Rule)
		for _, applied := range inspect.Explain(o.engine, inspect.Call{Resource: "pay:charge"}).Rules {
			assert.Equal(t, applied.Kind == "breaker" || strings.HasSuffix(scope, "charge") || scope == "engine=true", applied.Off, scope)
		}
		events := inspect.EventsOf(o.engine, 0).Events
		last, err := json.Marshal(events[len(events)-1])
		require.NoError(t, err)
		assert.Contains(t, string(last), `"to":"off","by":"alice at 192.0.2.1","until":"1970-01-12T13:56:40Z","text":"wrong [31m limit"`)
		status, _ = o.post(scope + "&switch=on")
		require.Equal(t, http.StatusNoContent, status)
		require.False(t, o.call("pay:charge", nil), scope)
		status, _ = o.post(scope + "&switch=")
		require.Equal(t, http.StatusNoContent, status)
		require.False(t, o.call("pay:charge", nil), scope)
		assert.Empty(t, inspect.StatusOf(o.engine).Switches)
	}
}

func TestForcedStateHasATimeAndACause(t *testing.T) {
	o := newOperated(t)
	status, failure := o.post("kind=breaker&rule=pay-errors&state=open&for=1h&by=" + strings.Repeat("a", 1000) + "&reason=" + strings.Repeat("b", 10_000))
	require.Equal(t, http.StatusNoContent, status, failure)
	forced := inspect.StatusOf(o.engine).Forced
	require.Len(t, forced, 1)
	assert.Equal(t, strings.Repeat("a", 100)+" at 192.0.2.1", forced[0].By)
	assert.Less(t, len(forced[0].Reason), 300)
	assert.Equal(t, time.Hour, forced[0].Until.Sub(forced[0].Since))
	assert.Equal(t, `breaker "pay-errors"`, forced[0].Scope())
}

func TestSwitchRequestsThatAreRefused(t *testing.T) {
	o := newOperated(t)
	for query, test := range map[string]struct {
		code    int
		message string
	}{
		"switch=off":                                   {400, "engine=true for all rules"},
		"switch=off&rule=":                             {400, "rule is empty"},
		"switch=off&kind=":                             {400, "kind is empty"},
		"switch=off&resource=":                         {400, "resource is empty"},
		"switch=off&engine=":                           {400, "engine is empty"},
		"switch=off&engine=yes":                        {400, "engine must be true"},
		"switch=off&engine=true&rule=pay-rate":         {400, "name one"},
		"switch=off&resource=a&kind=flow":              {400, "name one"},
		"switch=off&resource=a&kind=flow&rule=b":       {400, "name one"},
		"switch=off&rule=pay-rate&state=open":          {400, "contradict"},
		"switch=off&rule=pay-rate&action=reset":        {400, "contradict"},
		"resource=pay:charge&state=off":                {400, "switch=off"},
		"engine=true":                                  {400, "switch=off"},
		"switch=off&rules=pay-rate":                    {400, "is not a field"},
		"switch=off&rule=pay-rate&for=0s":              {400, "for is"},
		"switch=off&rule=pay-rate&for=-1m":             {400, "for is"},
		"switch=off&rule=pay-rate&for=":                {400, "for is"},
		"switch=off&rule=pay-rate&for=soon":            {400, "for is"},
		"switch=off&rule=pay-rate&%20rule=x":           {400, "is not a field"},
		"switch=off&rule=nobody":                       {422, `"nobody"`},
		"switch=off&kind=flaw":                         {422, `"flaw"`},
		"switch=off&resource=nobody":                   {422, `"nobody"`},
		"switch=shadow&rule=pay-rate":                  {422, `"shadow"`},
		"switch=off&switch=on&rule=pay-rate":           {400, "2 times"},
		"switch=off&rule=" + strings.Repeat("x", 9999): {422, "no such rule"},
	} {
		status, failure := o.post(query)
		assert.Equal(t, test.code, status, query)
		assert.Contains(t, failure, test.message, query)
		assert.Less(t, len(failure), 1000)
	}
	body := httptest.NewRequest(http.MethodPost, "/control", strings.NewReader(url.Values{
		"switch": {"off"}, "engine": {"true"}, "reason": {strings.Repeat("x", 1<<20)},
	}.Encode()))
	body.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, _ := o.send(body)
	assert.Equal(t, http.StatusBadRequest, status, "a megabyte")
	rebound := httptest.NewRequest(http.MethodPost, "/control?switch=off&engine=true", http.NoBody)
	rebound.Host = "evil.example"
	status, _ = o.send(rebound)
	assert.Equal(t, http.StatusForbidden, status)
	assert.Empty(t, inspect.StatusOf(o.engine).Switches)
}

// Two operators do the opposite at once, and their orders come in another order than they were given.
func TestOrderThatWasGivenLaterIsTheLast(t *testing.T) {
	o := newOperated(t)
	state := func() string {
		switches := o.engine.Status().Switches
		require.Len(t, switches, 1)
		return switches[0].State
	}
	for _, scope := range []string{"rule=pay-errors", "kind=breaker", "resource=pay:charge", "engine=true"} {
		status, failure := o.post(scope + "&switch=on&at=1700000000000000002")
		require.Equal(t, http.StatusNoContent, status, failure)
		status, failure = o.post(scope + "&switch=off&at=1700000000000000001")
		assert.Equal(t, http.StatusConflict, status)
		assert.Contains(t, failure, "given later")
		assert.Equal(t, "on", state(), scope)
		status, _ = o.post(scope + "&switch=off") // it does not say when
		require.Equal(t, http.StatusNoContent, status)
		assert.Equal(t, "off", state(), scope)

		status, _ = o.post(scope + "&switch=&at=1700000000000000003")
		require.Equal(t, http.StatusNoContent, status)
		status, _ = o.post(scope + "&switch=off&at=1700000000000000002")
		assert.Equal(t, http.StatusConflict, status, "what is released is released")
		assert.Empty(t, o.engine.Status().Switches, scope)
		o.engine.Clock().(*clock.Virtual).Advance(15 * time.Second)
		status, _ = o.post(scope + "&switch=off&at=1")
		require.Equal(t, http.StatusNoContent, status, "a clock that is wrong does not count for long")
		status, _ = o.post(scope + "&switch=")
		require.Equal(t, http.StatusNoContent, status)
	}
	for _, wrong := range []string{"engine=true&switch=off&at=", "engine=true&switch=off&at=-1", "engine=true&switch=off&at=now", "kind=breaker&state=open&at=1"} {
		status, failure := o.post(wrong)
		assert.Equal(t, http.StatusBadRequest, status, wrong)
		assert.Contains(t, failure, "at is ", wrong)
	}
}
