package nethttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// problem is what a client reads of a problem body.
type problem struct {
	Type, Title, Detail string
	Status              int
	ViolatedPolicies    []string `json:"violated-policies"`
}

func problemOf(t *testing.T, response answer) problem {
	t.Helper()
	assert.Equal(t, "application/problem+json", response.header.Get("Content-Type"))
	var p problem
	require.NoError(t, json.Unmarshal([]byte(response.body), &p))
	assert.Equal(t, response.status, p.Status)
	return p
}

func TestRefusalByAFlowRuleNamesTheExceededQuota(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1))
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{ShowRules: true}}, ok))
	get(t, server, "/orders/7")
	refused := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Equal(t, problem{
		Type:             "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:            "Request cannot be satisfied as assigned quota has been exceeded",
		Status:           429,
		Detail:           `The call of "GET:/orders/{id}" was refused by flow "reads"; try again in 1s.`,
		ViolatedPolicies: []string{"reads"},
	}, problemOf(t, refused))
}

func TestRefusalByAnotherKindIsAPlainProblem(t *testing.T) {
	recorder := httptest.NewRecorder()
	nethttp.WriteProblem(recorder, &core.BlockError{
		Resource: orders, Kind: "toy", Rule: "probe", Reason: rule.Unavailable, RetryAfter: 1500 * time.Millisecond,
	})
	assert.Equal(t, http.StatusServiceUnavailable, recorder.Code)
	var written problem
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &written))
	assert.Equal(t, problem{
		Type:   "about:blank",
		Title:  "Service Unavailable",
		Status: 503,
		Detail: "The call was refused; try again in 1.5s.",
	}, written)
	assert.NotContains(t, recorder.Header(), "Ratelimit")
	assert.NotContains(t, recorder.Header(), "Ratelimit-Policy")
}

func TestClosedEngineAnswersUnavailable(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, guardOrders(engine, nethttp.Options{}, ok))
	engine.Close()
	response := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, response.status)
	assert.Equal(t, "about:blank", problemOf(t, response).Type)
}

func TestDeadlineThatHasEndedAnswersUnavailable(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, queue())
	guarded := guardOrders(engine, nethttp.Options{}, ok)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		late, cancel := context.WithDeadline(r.Context(), time.Now().Add(-time.Second))
		defer cancel()
		guarded.ServeHTTP(w, r.WithContext(late))
	}))
	response := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, response.status)
	assert.Equal(t, "Service Unavailable", problemOf(t, response).Title)
}

func TestWriteProblemFindsWrappedErrors(t *testing.T) {
	block := &core.BlockError{Resource: "r", Kind: "toy", Rule: "mine"}
	for _, test := range []struct {
		err    error
		status int
	}{
		{block, http.StatusTooManyRequests},
		{core.ErrClosed, http.StatusServiceUnavailable},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{context.Canceled, 499},
		{core.ErrInvalid, http.StatusInternalServerError},
	} {
		recorder := httptest.NewRecorder()
		nethttp.WriteProblem(recorder, fmt.Errorf("wrapped: %w", test.err))
		assert.Equal(t, test.status, recorder.Code, test.err)
	}
}

// A limit of calls at once has no policy in the fields: the body names none either.
func TestBodyNamesNoPolicyThatTheFieldsLack(t *testing.T) {
	engine := core.New(core.Config{Logger: discardLogger()})
	defer engine.Close()
	users := rule.StringsOf("user")
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "at-once", Resource: "once", Param: users, Concurrency: 1},
		{Name: "a-minute", Resource: "minute", Param: users, Limit: 1, Window: time.Minute},
	}}))
	user := core.String("user", "ada")
	for resource, want := range map[string]int{"once": 0, "minute": 1} {
		guard, err := engine.Entry(t.Context(), resource, user)
		require.NoError(t, err)
		_, err = engine.Entry(t.Context(), resource, user)
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		answers := nethttp.NewAnswers(engine, nethttp.Fields{}, nethttp.Spread{})
		write := map[string]func(w http.ResponseWriter){
			"Answers":                 func(w http.ResponseWriter) { answers.WriteRefused(w, block, "", user) },
			"Answers, from the cache": func(w http.ResponseWriter) { answers.WriteRefused(w, block, "", user) },
			"WriteProblem behind fields": func(w http.ResponseWriter) {
				nethttp.NewAnswers(engine, nethttp.Fields{}, exact).SetRefused(w.Header(), block, "", user)
				nethttp.WriteProblem(w, err)
			},
		}
		for name, write := range write {
			recorder := httptest.NewRecorder()
			write(recorder)
			var body problem
			require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &body))
			assert.Equal(t, http.StatusTooManyRequests, recorder.Code)
			assert.Len(t, body.ViolatedPolicies, want, "%s: %s", resource, name)
			for _, policy := range body.ViolatedPolicies {
				assert.Contains(t, recorder.Header().Get("RateLimit-Policy"), policy)
			}
		}
		guard.Exit()
	}
}
