package nethttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// refuse returns the refusal of a call and how it is answered.
func refuse(t *testing.T, engine *core.Engine, answers *nethttp.Answers, origin string) (*core.BlockError, *httptest.ResponseRecorder) {
	t.Helper()
	var block *core.BlockError
	_, err := engine.Entry(t.Context(), orders, core.Origin(origin))
	require.ErrorAs(t, err, &block)
	response := httptest.NewRecorder()
	answers.WriteRefused(response, block, origin)
	return block, response
}

// assertAsWritten holds an answer against one that was not remembered.
func assertAsWritten(t *testing.T, engine *core.Engine, block *core.BlockError, origin string, answer *httptest.ResponseRecorder) {
	t.Helper()
	want := httptest.NewRecorder()
	nethttp.NewAnswers(engine, nethttp.Fields{}, exact).SetRefused(want.Header(), block, origin, core.Origin(origin)) // which it has not kept yet
	nethttp.WriteProblem(want, block)
	assert.Equal(t, want.Code, answer.Code)
	assert.Equal(t, want.Header(), answer.Header())
	assert.Equal(t, want.Body.String(), answer.Body.String())
}

func TestCachedAnswerEqualsANewOne(t *testing.T) {
	mobile := rateLimit("mobile", orders, 0)
	mobile.Origin = "mobile"
	sets := []rules.Set{
		{Flow: []flow.Rule{rateLimit("all", orders, 0)}},
		{Flow: []flow.Rule{rateLimit("all", orders, 0), rateLimit("more", orders, 7)}},
		{Flow: []flow.Rule{rateLimit("all", orders, 0), mobile}},
		{Flow: []flow.Rule{rateLimit("other", orders, 0)}},
	}
	engine, _ := newEngine(t, core.Config{})
	answers := nethttp.NewAnswers(engine, nethttp.Fields{}, exact)
	for range 3 {
		for _, set := range sets {
			require.NoError(t, engine.Load(set))
			for range 3 {
				for _, origin := range []string{"", "mobile", "web"} {
					block, answer := refuse(t, engine, answers, origin)
					assertAsWritten(t, engine, block, origin, answer)
				}
			}
		}
	}
}

func TestAnswersToManyOriginsAreCorrect(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", orders, 0))
	answers := nethttp.NewAnswers(engine, nethttp.Fields{}, exact)
	for i := range 5000 { // more than are remembered
		block, answer := refuse(t, engine, answers, fmt.Sprint(i))
		assertAsWritten(t, engine, block, fmt.Sprint(i), answer)
	}
}

func TestChangingAResponseDoesNotChangeTheCachedAnswer(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", orders, 0.5))
	guard, err := engine.Entry(t.Context(), orders)
	require.NoError(t, err)
	guard.Exit()
	answers := nethttp.NewAnswers(engine, nethttp.Fields{}, exact)
	for range 3 {
		block, answer := refuse(t, engine, answers, "")
		assertAsWritten(t, engine, block, "", answer)
		for _, field := range []string{"Retry-After", "RateLimit", "RateLimit-Policy"} {
			answer.Header().Add(field, "of another middleware")
			answer.Header().Set(field, "changed")
		}
	}
}

func TestAnswersAreSafeForConcurrentUse(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", orders, 0))
	answers := nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 200 {
				_, err := engine.Entry(t.Context(), orders)
				header := http.Header{}
				answers.SetRefused(header, err.(*core.BlockError), fmt.Sprint(i)) //nolint:errorlint // it is one
				assert.Equal(t, `"all";r=0`, header.Get("RateLimit"))
				answers.SetPassed(header, orders, fmt.Sprint(i))
				assert.Equal(t, `"all";q=0;w=1`, header.Get("RateLimit-Policy"))
			}
		})
	}
	all.Wait()
}

func TestPoliciesOfPassedCallsFollowTheRules(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	answers := nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{})
	for _, limit := range []float64{5, 6, 5} {
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{rateLimit("all", orders, limit)}}))
		for range 3 {
			engine.Resource(orders)
			want, got := http.Header{}, http.Header{}
			nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{}).SetPassed(want, orders, "")
			answers.SetPassed(got, orders, "")
			assert.Equal(t, want, got)
			assert.Contains(t, got.Get("RateLimit-Policy"), fmt.Sprint("q=", limit))
		}
	}
}

func TestAnswersDoNotCacheLongNames(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", "r", 0))
	answers := nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{})
	origin := strings.Repeat("o", 1<<20)
	before := heapInUse()
	for i := range 200 {
		name := origin + strconv.Itoa(i)
		_, err := engine.Entry(t.Context(), "r", core.Origin(name))
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		answers.WriteRefused(httptest.NewRecorder(), block, name)
		answers.SetPassed(http.Header{}, "r", name)
	}
	assert.Less(t, heapInUse()-before, int64(50<<20), "200 origins of 1 MiB each")
}

func TestCachedNamesDoNotRetainLargerBuffers(t *testing.T) {
	partners := make([]flow.Rule, 200)
	for i := range partners {
		partners[i] = flow.Rule{Name: strconv.Itoa(i), Resource: "r", Origin: strconv.Itoa(i), Limit: 0}
	}
	engine, _ := newEngine(t, core.Config{}, partners...)
	answers := nethttp.NewAnswers(engine, nethttp.Fields{Always: true, ShowRules: true}, nethttp.Spread{})
	before := heapInUse()
	for i := range partners {
		field := strconv.Itoa(i) + "; session=" + strings.Repeat("s", 1<<20)
		name, _, _ := strings.Cut(field, ";")
		_, err := engine.Entry(t.Context(), "r", core.Origin(name))
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		answers.WriteRefused(httptest.NewRecorder(), block, name)
		answers.SetPassed(http.Header{}, "r", name)
	}
	assert.Less(t, heapInUse()-before, int64(50<<20), "200 origins from fields of 1 MiB each")
	runtime.KeepAlive(answers)
}

func TestRefusingCallersWhomNoRuleNamesAllocatesNothing(t *testing.T) {
	partner := flow.Rule{Name: "partner", Resource: orders, Origin: "partner", Limit: 1}
	engine, _ := newEngine(t, core.Config{}, partner, rateLimit("all", orders, 0))
	var callers [5000]string
	for i := range callers {
		callers[i] = "caller-" + strconv.Itoa(i)
	}
	next := 0
	origin := func(*http.Request) string { next++; return callers[next%len(callers)] }
	handler := nethttp.Middleware(engine, nethttp.Options{Fields: nethttp.Fields{ShowRules: true}, Resource: func(*http.Request) string { return orders }, Origin: origin})(http.HandlerFunc(ok))
	request, writer := httptest.NewRequest(http.MethodGet, "/", http.NoBody), adaptertest.NewDiscardWriter()
	allocations := testing.AllocsPerRun(1000, func() { handler.ServeHTTP(writer, request) })
	assert.LessOrEqual(t, allocations, 4.0, "of the options of the call")
	assert.Equal(t, `"all";q=0;w=1`, writer.Header().Get("RateLimit-Policy"), "and not that of the partner")
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
