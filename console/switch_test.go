package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
)

func TestOperatorSwitchesRulesOffAndReleasesThem(t *testing.T) {
	engine := newEngine(t, `flow: [{name: none, resource: orders, limit: 0}]`)
	address := serve(t, console.Options{Engine: engine, Authorize: everybody(console.Operator)})
	passes := func() bool {
		guard, err := engine.Entry(t.Context(), "orders")
		guard.Exit()
		return err == nil
	}
	for _, scope := range []string{`"kind":"flow","rule":"none"`, `"kind":"flow"`, `"resource":"orders"`, `"all":true`} {
		require.False(t, passes(), scope)
		code, _, body := send(t, http.MethodPost, address+"/api/switch", `{`+scope+`,"state":"off","for":"1h","reason":"wrong <b>limit</b>"}`, asJSON)
		require.Equal(t, http.StatusOK, code, body)
		assert.JSONEq(t, `{"done":1,"total":1,"failed":[]}`, body)
		require.True(t, passes(), scope)
		switched := engine.Status().Switches
		require.Len(t, switched, 1)
		assert.Equal(t, "alice", switched[0].By)
		assert.Equal(t, "wrong <b>limit</b>", switched[0].Reason)
		assert.WithinDuration(t, time.Now().Add(time.Hour), switched[0].Until, 10*time.Minute)

		for _, screen := range []string{"overview", "resource&name=orders", "rules", "fleet", "instances", "lists", "history"} {
			watch(t, address+"/api/live?screen="+screen, `"by":"alice","reason":"wrong \u003cb\u003elimit`)
		}
		watch(t, address+"/api/live?screen=history", `"type":"switch"`)
		watch(t, address+"/api/live?screen=resource&name=orders", `"off":1`)
		_, _, body = send(t, http.MethodGet, address+"/api/explain?resource=orders", "", nil)
		assert.Contains(t, body, `"off":1`)
		assert.Contains(t, body, `"refuses":0`)

		code, _, body = send(t, http.MethodPost, address+"/api/switch", `{`+scope+`,"state":"","reason":"mended"}`, asJSON)
		require.Equal(t, http.StatusOK, code, body)
		assert.Empty(t, engine.Status().Switches)
	}
	assert.False(t, passes())
}

func TestSwitchesThatAreRefused(t *testing.T) {
	engine := newEngine(t, ordersRule)
	address := serve(t, console.Options{Engine: engine, Authorize: everybody(console.Operator)})
	for body, want := range map[string]string{
		`{"state":"off","reason":"a"}`:                                                      "name a rule",
		`{"rule":"orders","state":"off","reason":"a"}`:                                      "of which kind",
		`{"kind":"flow","resource":"orders","state":"off","reason":"a"}`:                    "name a rule",
		`{"kind":"flow","all":true,"state":"off","reason":"a"}`:                             "name a rule",
		`{"all":true,"state":"gone","reason":"a"}`:                                          "off or on",
		`{"all":true,"state":"off"}`:                                                        "say why",
		`{"all":true,"state":"off","reason":" \t\n"}`:                                       "say why",
		`{"all":true,"state":"off","reason":"` + strings.Repeat("a", 1<<20) + `"}`:          "too long",
		`{"all":true,"state":"off","reason":"a","for":"soon"}`:                              "for how long",
		`{"all":true,"state":"off","reason":"a","for":"-1h"}`:                               "for how long",
		`{"all":true,"state":"","reason":"a","for":"1h"}`:                                   "for how long",
		`{"all":true,"state":"off","reason":"a","by":"bob"}`:                                "unknown field",
		`{"kind":"flow","rule":"<script>alert(1)</script>","state":"off","reason":"a"}`:     "no such rule",
		`{"kind":"flaw","state":"off","reason":"a"}`:                                        "flaw",
		`{"resource":"` + strings.Repeat("x", 1<<20) + `","state":"off","reason":"a"}`:      "was not called",
		`{"kind":"flow","rule":"orders","state":"off","reason":"a"} {"all":true}`:           "more than one",
		`{"kind":"flow","rule":"orders&engine=true","state":"off","for":"","reason":"a"}`:   "no such rule",
		`{"kind":"flow&engine=true","rule":"orders","state":"off","for":"1h","reason":"a"}`: "flow&engine=true",
	} {
		code, _, answer := send(t, http.MethodPost, address+"/api/switch", body, asJSON)
		assert.Equal(t, http.StatusBadRequest, code, "%.100s", body)
		var failure struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(answer), &failure))
		assert.Contains(t, failure.Error, want, "%.100s", body)
		assert.Less(t, len(failure.Error), 2000)
	}
	assert.Empty(t, engine.Status().Switches)
}

func TestHostileReasonIsShownAsText(t *testing.T) {
	engine := newEngine(t, ordersRule)
	address := serve(t, console.Options{Engine: engine, Authorize: everybody(console.Operator)})
	code, _, body := send(t, http.MethodPost, address+"/api/switch",
		`{"all":true,"state":"off","reason":"<script>alert(1)</script>\r\nevent: screen\ndata: {} \u202egnorw"}`, asJSON)
	require.Equal(t, http.StatusOK, code, body)
	seen := watch(t, address+"/api/live?screen=overview", `\u003cscript\u003e`)
	assert.NotContains(t, seen, "<script>")
	assert.NotContains(t, seen, "\nevent: screen\ndata: {} ", "it begins no event of its own")
	assert.NotContains(t, seen, "\u202e")
	require.NoError(t, engine.Switch(core.Scope{}, ""))
}
