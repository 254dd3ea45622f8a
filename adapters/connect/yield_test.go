package penstockconnect_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/types/known/wrapperspb"

	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/core"
)

// On one processor, handlers that compute do not keep other calls from their rules: those
// would wait where no rule sees them, until their clients have given up.
func TestCallsReachTheirRulesBeforeOthersCompute(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	engine := core.New(core.Config{})
	defer engine.Close()
	var entered, seen atomic.Int64 // now; when the first handler of a round began
	var first atomic.Bool
	options := penstockconnect.Options{Resource: func(context.Context, *penstockconnect.Call) string {
		entered.Add(1)
		return "compute"
	}}
	call := penstockconnect.ServerInterceptor(engine, options).WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		if first.CompareAndSwap(false, true) {
			seen.Store(entered.Load())
		}
		return nil, nil //nolint:nilnil // does nothing
	})
	const calls = 20
	most := int64(0)
	for range 20 { // the scheduler now and then runs first what came last
		entered.Store(0)
		first.Store(false)
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				_, err := call(context.Background(), connect.NewRequest(wrapperspb.String("a")))
				assert.NoError(t, err)
			})
		}
		all.Wait()
		most = max(most, seen.Load())
	}
	assert.Greater(t, most, int64(calls/2), "calls that have come to their rules before the first one computes")
}
