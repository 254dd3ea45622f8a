package nethttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestRefusalNamesItsRuleAndListsAllPolicies(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{},
		flow.Rule{Name: "per-minute", Resource: orders, Limit: 5, Window: time.Minute, Buckets: 60},
		rateLimit("per-second", orders, 2),
		rateLimit("another", "GET:/", 1),
	)
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{ShowRules: true}}, ok))
	for range 2 {
		passed := get(t, server, "/orders/7")
		assert.NotContains(t, passed.header, "Ratelimit", "only refusals tell by default")
		assert.NotContains(t, passed.header, "Ratelimit-Policy")
	}
	refused := get(t, server, "/orders/7")
	assert.Equal(t, "1", refused.header.Get("Retry-After"))
	assert.Equal(t, []item{{"per-second", map[string]int64{"r": 0, "t": 1}}}, parseList(t, refused.header, "RateLimit"))
	assert.ElementsMatch(t, []item{
		{"per-minute", map[string]int64{"q": 5, "w": 60}},
		{"per-second", map[string]int64{"q": 2, "w": 1}},
	}, parseList(t, refused.header, "RateLimit-Policy"))

	virtual.Advance(time.Second)
	get(t, server, "/orders/7")
	get(t, server, "/orders/7")
	virtual.Advance(time.Second)
	get(t, server, "/orders/7")
	refused = get(t, server, "/orders/7")
	assert.Equal(t, "58", refused.header.Get("Retry-After"))
	assert.Equal(t, []item{{"per-minute", map[string]int64{"r": 0, "t": 58}}}, parseList(t, refused.header, "RateLimit"))
}

func TestFieldsAlwaysDescribeTheRuleWithTheLeastQuotaLeft(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{},
		flow.Rule{Name: "per-minute", Resource: orders, Limit: 5, Window: time.Minute, Buckets: 60},
		rateLimit("per-second", orders, 3),
	)
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok))
	for _, step := range []struct {
		advance   time.Duration
		status    int
		rule      string
		remaining int64
	}{
		{0, 200, "per-second", 2},
		{0, 200, "per-second", 1},
		{0, 200, "per-second", 0},
		{0, 429, "per-second", 0},
		{time.Second, 200, "per-minute", 1},
		{0, 200, "per-minute", 0},
		{0, 429, "per-minute", 0},
	} {
		virtual.Advance(step.advance)
		response := get(t, server, "/orders/7")
		assert.Equal(t, step.status, response.status)
		fields := parseList(t, response.header, "RateLimit")
		require.Len(t, fields, 1)
		assert.Equal(t, step.rule, fields[0].name)
		assert.Equal(t, step.remaining, fields[0].parameters["r"])
		assert.Len(t, parseList(t, response.header, "RateLimit-Policy"), 2)
	}
}

func TestFieldsAlwaysAreLeftOutWithoutRules(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	response := get(t, serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok)), "/orders/7")
	assert.NotContains(t, response.header, "Ratelimit")
	assert.NotContains(t, response.header, "Ratelimit-Policy")
}

func TestFieldsNeverLeaveRetryAfterAndNameNothing(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("secret", orders, 1))
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Never: true}}, ok))
	get(t, server, "/orders/7")
	refused := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Equal(t, "1", refused.header.Get("Retry-After"))
	assert.NotContains(t, refused.header, "Ratelimit")
	assert.NotContains(t, refused.header, "Ratelimit-Policy")
	assert.NotContains(t, refused.body, "secret")
	assert.Equal(t, problem{
		Type:   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:  "Request cannot be satisfied as assigned quota has been exceeded",
		Status: 429,
		Detail: "The call was refused; try again in 1s.",
	}, problemOf(t, refused))
}

func TestRuleThatBlocksAllAnnouncesNoQuota(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("closed", orders, 0))
	refused := get(t, serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{ShowRules: true}}, ok)), "/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.NotContains(t, refused.header, "Retry-After")
	assert.Equal(t, []item{{"closed", map[string]int64{"r": 0}}}, parseList(t, refused.header, "RateLimit"))
	assert.Equal(t, []item{{"closed", map[string]int64{"q": 0, "w": 1}}}, parseList(t, refused.header, "RateLimit-Policy"))
}

func TestRetryAfterIsRoundedUpToSeconds(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	for _, test := range []struct {
		after time.Duration
		want  string
	}{
		{0, ""},
		{time.Nanosecond, "1"},
		{time.Second, "1"},
		{time.Second + time.Nanosecond, "2"},
		{90 * time.Second, "90"},
		{rule.Never, ""},
		{rule.Never - 1, "9223372037"},
	} {
		header := http.Header{}
		block := &core.BlockError{Rule: "r", Kind: rules.KindFlow, RetryAfter: test.after}
		nethttp.NewAnswers(engine, nethttp.Fields{ShowRules: true}, exact).SetRefused(header, block, "")
		assert.Equal(t, test.want, header.Get("Retry-After"))
		assert.Empty(t, header.Get("RateLimit-Policy"), "no rule, no field")
		assert.Empty(t, header.Get("RateLimit"), "it would be of no policy")
	}
}

func TestProblemDistinguishesNeverFromUnknown(t *testing.T) {
	for after, want := range map[time.Duration]string{
		rule.Never:  "such a call cannot pass under the present rules",
		0:           "when such a call can pass is unknown",
		time.Minute: "try again in 1m0s",
	} {
		recorder := httptest.NewRecorder()
		nethttp.WriteProblem(recorder, &core.BlockError{Rule: "r", Kind: rules.KindFlow, RetryAfter: after})
		assert.Contains(t, recorder.Body.String(), want)
	}
}

// nameOf returns the name of a rule as a client reads it; "" if no rule can have that name.
func nameOf(t require.TestingT, rule string) string {
	engine := core.New(core.Config{Logger: discardLogger()})
	defer engine.Close()
	hasRule := engine.Load(rules.Set{Flow: []flow.Rule{{Name: rule, Resource: "r", Limit: 0}}}) == nil && rule != ""
	recorder := httptest.NewRecorder()
	nethttp.NewAnswers(engine, nethttp.Fields{ShowRules: true}, nethttp.Spread{}).WriteRefused(recorder, &core.BlockError{Resource: "r", Rule: rule, Kind: rules.KindFlow}, "")
	var body struct {
		Policies []string `json:"violated-policies"`
	}
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &body))
	if !hasRule {
		assert.Empty(t, body.Policies)
		return ""
	}
	require.Len(t, body.Policies, 1)
	assert.Equal(t, body.Policies[0], parseList(t, recorder.Header(), "RateLimit")[0].name)
	assert.Equal(t, body.Policies[0], parseList(t, recorder.Header(), "RateLimit-Policy")[0].name)
	return body.Policies[0]
}

func TestNamesOfRulesBecomeStructuredStrings(t *testing.T) {
	for _, test := range []struct{ rule, want string }{
		{"create-qps", "create-qps"},
		{"GET:/orders/{id}", "GET:/orders/{id}"},
		{`say "hi" \o/, ok; q=1`, `say "hi" \o/, ok; q=1`},
		{"größe", "gr%C3%B6%C3%9Fe"},
		{"a\r\nSet-Cookie: b\x00\x7f", ""}, // no rule can have this name
		{"50%", "50%25"},
		{"gr%C3%B6%C3%9Fe", "gr%25C3%25B6%25C3%259Fe"},
		{"", ""},
	} {
		assert.Equal(t, test.want, nameOf(t, test.rule))
	}
}

func FuzzNameOfARuleIsAStructuredString(f *testing.F) {
	f.Add("create-qps")
	f.Add(`"\` + "\xff\n")
	f.Fuzz(func(t *testing.T, rule string) { nameOf(t, rule) })
}

func TestPoliciesOfAnyRulesFollowTheGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine := core.New(core.Config{Logger: discardLogger()})
		defer engine.Close()
		var set rules.Set
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[!-~éß]{1,20}`), 1, 5, rapid.ID).Draw(t, "names")
		for _, name := range names {
			set.Flow = append(set.Flow, flow.Rule{
				Name: name, Resource: orders, Algorithm: flow.Throttle,
				Limit:  rapid.Float64Range(0, flow.MaxLimit).Draw(t, "limit"),
				Window: time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(24*time.Hour)).Draw(t, "window")),
			})
		}
		require.NoError(t, engine.Load(set))
		header := http.Header{}
		nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{}).SetPassed(header, orders, "")
		assert.Len(t, parseList(t, header, "RateLimit-Policy"), len(names))
		assert.Len(t, parseList(t, header, "RateLimit"), 1)
	})
}

func TestFieldsListTheRulesForTheCaller(t *testing.T) {
	mobile := rateLimit("mobile", orders, 5)
	mobile.Origin = "mobile"
	pattern := flow.Rule{Name: "pattern", Match: "GET:*", Limit: 7, Algorithm: flow.TokenBucket}
	shadow := rateLimit("shadow", orders, 1)
	shadow.Shadow = true
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", orders, 9), mobile, pattern, shadow)
	server := serve(t, guardOrders(engine, nethttp.Options{
		Fields: nethttp.Fields{Always: true, ShowRules: true},
		Origin: func(r *http.Request) string { return r.URL.Query().Get("app") },
	}, ok))
	policies := func(path string) (names []string) {
		for _, policy := range parseList(t, get(t, server, path).header, "RateLimit-Policy") {
			names = append(names, policy.name)
		}
		return names
	}
	assert.ElementsMatch(t, []string{"pattern", "all"}, policies("/orders/7"))
	assert.ElementsMatch(t, []string{"pattern", "all", "mobile"}, policies("/orders/7?app=mobile"))
	for range 3 {
		get(t, server, "/orders/7?app=mobile")
	}
	last := parseList(t, get(t, server, "/orders/7?app=mobile").header, "RateLimit")
	assert.Equal(t, "mobile", last[0].name, "the one nearest to its end")
	refused := get(t, server, "/orders/7?app=mobile")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Len(t, parseList(t, refused.header, "RateLimit-Policy"), 3)
}
