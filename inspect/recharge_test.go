package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestControlHandlerRechargesBalances(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{
		Flow: []flow.Rule{{Name: "all", Resource: "r", Algorithm: flow.Prepaid}, {Name: "rate", Resource: "r", Limit: 5}},
		HotParam: []hotparam.Rule{
			{Name: "credit", Resource: "r", Param: rule.StringsOf("tenant"), Algorithm: hotparam.Prepaid},
			{Name: "pair", Resource: "r", Param: rule.StringsOf("tenant", "user"), Algorithm: hotparam.Prepaid},
		},
	}))
	handler := inspect.ControlHandler(engine, inspect.Options{})
	post := func(query string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/control?action=recharge&"+query, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, c := range []struct {
		query, want string
		code        int
	}{
		{"kind=flow&rule=all&tokens=10", `{"left":10}`, 200},
		{"kind=hotParam&rule=credit&attr=tenant=acme&tokens=1000&by=alice&reason=invoice", `{"left":1000}`, 200},
		{"kind=hotParam&rule=credit&key=acme&tokens=-50", `{"left":950}`, 200},
		{"kind=hotParam&rule=credit&key=other&tokens=0", `{"left":0}`, 200},
		{"kind=hotParam&rule=pair&attr=tenant=a&attr=user=b&tokens=1", `{"left":1}`, 200},
		{"kind=hotParam&rule=pair&key=acme&tokens=1", "say which value of user", 422},
		{"kind=hotParam&rule=credit&tokens=1", "say which value of tenant", 422},
		{"kind=flow&rule=rate&tokens=1", "has no balance", 422},
		{"kind=flow&rule=all&resource=x&tokens=1", "is for the resource", 422},
		{"kind=flow&rule=all", "tokens is missing", 400},
		{"kind=flow&rule=all&key=acme&tokens=1", "one balance for all values", 422},
		{"kind=flow&rule=all&attr=tenant=acme&tokens=1", "one balance for all values", 422},
		{"kind=flow&rule=all&tokens=many", "whole number", 400},
		{"kind=flow&tokens=1", "rule is missing", 400},
		{"rule=all&tokens=1", `{"left":11}`, 200},
		{"kind=&rule=all&tokens=1", "kind is empty", 400},
		{"kind=flow&rule=all&tokens=1&state=open", "state and action", 400},
		{"kind=hotParam&rule=credit&key=&tokens=1", "key is empty", 400},
		{"kind=hotParam&rule=credit&key=a&attr=tenant=a&tokens=1", "key is empty, or stands beside attr", 400},
	} {
		code, body := post(c.query)
		assert.Equal(t, c.code, code, "%s: %s", c.query, body)
		assert.Contains(t, body, c.want, c.query)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/control?kind=flow&rule=all&state=&tokens=1", nil))
	assert.Equal(t, 400, w.Code)

	quotas, err := inspect.QuotasOf(engine, inspect.RuleQuery{Rule: "credit", Attributes: map[string]string{"tenant": "acme"}})
	require.NoError(t, err)
	require.Len(t, quotas.Quotas, 1)
	assert.EqualValues(t, 950, quotas.Quotas[0].Remaining)
	assert.True(t, quotas.Quotas[0].Prepaid)
	text, err := json.Marshal(quotas)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "used")
}
