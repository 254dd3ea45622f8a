package adaptertest

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rules"
)

// CheckAllocs checks that call allocates at most so many times more than base, which may be
// nil. It is skipped with the race detector, where pools drop objects at random.
func CheckAllocs(t *testing.T, most int, call, base func(), what string) {
	t.Helper()
	if RaceEnabled {
		return
	}
	const runs = 200
	call()
	allocs := testing.AllocsPerRun(runs, call)
	if base != nil {
		base()
		allocs -= testing.AllocsPerRun(runs, base)
	}
	assert.LessOrEqual(t, allocs, float64(most), "allocations of %s", what)
}

// checkYield checks that a guard lets other calls come to their rules before a handler
// computes, on one processor: else those would wait where no rule sees them, until their
// clients have given up. serve makes one call; entering is to be called when a call comes
// to its guard, handling when its handler begins.
func checkYield(t *testing.T, serve func(entering, handling func()) (call func())) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var entered, seen atomic.Int64 // now; when the first handler of a round began
	var first atomic.Bool
	call := serve(func() { entered.Add(1) }, func() {
		n := entered.Load() // before, or those that come while this goroutine is interrupted would count
		if first.CompareAndSwap(false, true) {
			seen.Store(n)
		}
	})
	const calls = 20
	most := int64(0)
	for range 20 { // the scheduler now and then runs first what came last
		entered.Store(0)
		first.Store(false)
		var all sync.WaitGroup
		for range calls {
			all.Go(call)
		}
		all.Wait()
		most = max(most, seen.Load())
	}
	assert.Greater(t, most, int64(calls/2), "calls that have come to their rules before the first one computes")
}

func httpDirectTests() []httpTest {
	return []httpTest{
		{"requests come to their rules before others compute", []Feature{Direct}, requestsYield},
		{"passing and refusing allocate no more than they may", []Feature{Direct}, allocationsAreBounded},
		{"attributes are read only if a rule asks", []Feature{Direct}, attributesAreReadOnDemand},
	}
}

func requestsYield(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	checkYield(t, func(entering, handling func()) func() {
		serves := h.Direct(t, Server{
			Guards: []Guard{{engine, Options{Resource: func(Request) string {
				entering()
				return "compute"
			}}}},
			Routes: ordersRoutes(func(x Exchange) error {
				handling()
				return ok(x)
			}),
		})
		return func() { serves(ordersRequest())() }
	})
}

func ordersRequest() *http.Request {
	return httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
}

// nothing is a handler that allocates nothing.
func nothing(Exchange) error { return nil }

func allocationsAreBounded(t *testing.T, h *HTTPHarness) {
	bare := h.Direct(t, Server{Routes: ordersRoutes(nothing)})(ordersRequest())
	for _, test := range []struct {
		name  string
		limit float64
		most  int
	}{
		{"passing", 1e9, h.PassAllocs},
		{"refusing", 0, h.RefuseAllocs},
	} {
		engine, _ := NewEngine(t, h.limited(test.limit))
		guarded := h.Direct(t, Server{Guards: []Guard{{Engine: engine}}, Routes: ordersRoutes(nothing)})(ordersRequest())
		CheckAllocs(t, test.most, guarded, bare, test.name)
	}
}

func attributesAreReadOnDemand(t *testing.T, h *HTTPHarness) {
	long := strings.Repeat("x", 4000)
	request := func(text string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/orders/"+text+"?q="+text, http.NoBody)
		r.Header = http.Header{"X-Tenant": {text}, "Cookie": {"sid=" + text}, "X-Forwarded-For": {text}}
		return r
	}
	server := func(key string) func(*http.Request) func() {
		engine := (&AttributeReader{Key: key}).NewEngine(t)
		return h.Direct(t, Server{Guards: []Guard{{Engine: engine}}, Routes: ordersRoutes(nothing)})
	}
	// To shorten a long text allocates.
	CheckAllocs(t, 0, server("user")(request(long)), server("user")(request("7")), "a long attribute that no rule looks at")
	if RaceEnabled {
		return
	}
	read := testing.AllocsPerRun(100, server("header:X-Tenant")(request(long)))
	unread := testing.AllocsPerRun(100, server("user")(request(long)))
	assert.Greater(t, read, unread, "a long attribute that a rule looks at")
}

// BenchmarkHTTP shows what a guard adds to a request, beside the same without it. The harness
// must not lack [Direct].
func BenchmarkHTTP(b *testing.B, h HTTPHarness) {
	b.Helper()
	h.fill()
	open, _ := NewEngine(b, h.limited(1e9))
	closed, _ := NewEngine(b, h.limited(0))
	for _, bench := range []struct {
		name   string
		guards []Guard
	}{
		{"unguarded", nil},
		{"passed", []Guard{{Engine: open}}},
		{"passed with fields", []Guard{{open, Options{Fields: nethttp.Fields{Always: true}}}}},
		{"refused", []Guard{{Engine: closed}}},
	} {
		serve := h.Direct(b, Server{Guards: bench.guards, Routes: ordersRoutes(nothing)})(ordersRequest())
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}
