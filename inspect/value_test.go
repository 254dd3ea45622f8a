package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestExplainHasThePartitionKeyOfTheFields(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{
		HotParam: []hotparam.Rule{
			{Name: "per-user", Resource: "pay", Param: rule.StringsOf("user"), Limit: 2},
			{Name: "at-once", Resource: "pay", Param: rule.StringsOf("user"), Concurrency: 2},
		},
		Flow: []flow.Rule{{Name: "all", Resource: "pay", Limit: 10}},
	}))
	keyOf := func(user string) string {
		attributes, err := inspect.ParseAttributes([]string{"user=" + user})
		require.NoError(t, err)
		found := ""
		for _, r := range inspect.Explain(engine, inspect.Call{Resource: "pay", Attributes: attributes}).Rules {
			if r.Name == "per-user" {
				found = r.PartitionKey
			} else {
				assert.Empty(t, r.PartitionKey, r.Name)
			}
		}
		return found
	}
	sum := sha256.Sum256([]byte("per-user\x00rule.String(\"ann\")"))
	assert.Equal(t, base64.StdEncoding.EncodeToString(sum[:9]), keyOf("ann"))
	assert.NotEqual(t, keyOf("ann"), keyOf("bob"))
}

func TestOneValueIsShownResetAndItsPenaltyLifted(t *testing.T) {
	t.Parallel()
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{{
		Name: "per-user", Resource: "pay", Param: rule.StringsOf("tenant", "user"), Limit: 2, Window: time.Minute,
		Penalty: hotparam.Penalty{After: 2, Within: time.Minute, For: time.Hour},
	}}}))
	tenant, user := core.String("tenant", "acme"), core.Int("user", 7)
	call := func() bool {
		guard, err := engine.Entry(context.Background(), "pay", tenant, user)
		guard.Exit()
		return err == nil
	}
	for range 5 {
		call()
	}
	read, act := inspect.Handler(engine, inspect.Options{}), inspect.ControlHandler(engine, inspect.Options{})
	show := func() inspect.ValueState {
		w := httptest.NewRecorder()
		read.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/value?kind=hotParam&rule=per-user&attr=tenant=acme&attr=user=7", nil))
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		var values inspect.Values
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &values))
		require.Len(t, values.States, 1)
		return values.States[0]
	}
	post := func(form string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/control", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		act.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	state := show()
	assert.InDelta(t, 2, *state.Used, 1e-6)
	assert.InDelta(t, 3600, state.Penalty, 1e-6)
	assert.Zero(t, state.Remaining)

	code, body := post("kind=hotParam&rule=per-user&attr=tenant=acme&attr=user=7&action=lift")
	require.Equal(t, http.StatusNoContent, code, body)
	assert.Zero(t, show().Penalty)
	assert.False(t, call(), "what it has used stays used")

	code, body = post("kind=hotParam&rule=per-user&attr=tenant=acme&attr=user=7&action=reset")
	require.Equal(t, http.StatusNoContent, code, body)
	assert.Zero(t, *show().Used)
	assert.True(t, call())

	for form, want := range map[string]string{
		"kind=hotParam&rule=per-user&attr=user=7&action=reset":                    "say which value of tenant",
		"kind=hotParam&rule=other&attr=user=7&action=reset":                       `no rule hotParam \"other\" is in force`,
		"kind=hotParam&rule=per-user&action=reset":                                "attr is missing",
		"kind=hotParam&attr=user=7&action=reset":                                  "rule is missing",
		"kind=hotParam&rule=per-user&attr=user=7&action=reset&state=":             "contradict",
		"kind=hotParam&rule=per-user&attr=tenant=acme&attr=user=7":                "reset or lift",
		"kind=hotParam&rule=per-user&attr=tenant=acme&attr=user=7&action=forgive": "there are reset and lift",
		"kind=hotParam&rule=per-user&attr=tenant&action=reset":                    "not of the form key=value",
	} {
		code, body := post(form)
		assert.GreaterOrEqual(t, code, 400, form)
		assert.Contains(t, body, want, form)
	}
}
