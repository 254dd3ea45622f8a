package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// On one processor, handlers that compute do not keep other requests from their rules: those
// would wait where no rule sees them, until their clients have given up.
func TestRequestsReachTheirRulesBeforeOthersCompute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	engine := core.New(core.Config{})
	defer engine.Close()
	var entered, seen atomic.Int64 // now; when the first handler of a round began
	var first atomic.Bool
	handler := nethttp.Middleware(engine, nethttp.Options{
		Resource: func(*http.Request) string {
			entered.Add(1)
			return "compute"
		},
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if first.CompareAndSwap(false, true) {
			seen.Store(entered.Load())
		}
	}))
	const requests = 20
	most := int64(0)
	for range 20 { // the scheduler now and then runs first what came last
		entered.Store(0)
		first.Store(false)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			})
		}
		all.Wait()
		most = max(most, seen.Load())
	}
	assert.Greater(t, most, int64(requests/2), "requests that have come to their rules before the first one computes")
}
