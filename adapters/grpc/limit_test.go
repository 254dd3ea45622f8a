package penstockgrpc_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/flow"
)

func TestLimitHoldsExactlyUnderConcurrency(t *testing.T) {
	const callers, each, limit = 20, 10, 77
	everywhere(t, func(t *testing.T, at side, s shape) {
		engine := newEngine(t, flow.Rule{Resource: s.method, Limit: limit})
		client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: succeed})
		var passed, refused atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					switch code := status.Code(s.call(t.Context(), client)); code {
					case codes.OK:
						passed.Add(1)
					case codes.ResourceExhausted:
						refused.Add(1)
					default:
						assert.Fail(t, "neither passed nor refused", code)
					}
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, limit, passed.Load())
		assert.EqualValues(t, callers*each-limit, refused.Load())

		ended := requireEnded(t, engine, s.method)
		assert.EqualValues(t, limit, ended.Passed)
		assert.EqualValues(t, callers*each-limit, ended.Blocked)
		assert.Zero(t, ended.Failed)
	})
}
