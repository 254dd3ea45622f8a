package penstockconnect_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
)

func TestCallsReachTheirRulesBeforeOthersCompute(t *testing.T) {
	adaptertest.CheckYield(t, func(entering, handling func()) (call func()) {
		options := penstockconnect.Options{Resource: func(context.Context, *penstockconnect.Call) string {
			entering()
			return "compute"
		}}
		guard := penstockconnect.ServerInterceptor(newEngine(t), options)
		serve := guard.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			handling()
			return nil, nil //nolint:nilnil // does nothing
		})
		return func() {
			_, err := serve(context.Background(), connect.NewRequest(wrapperspb.String("a")))
			assert.NoError(t, err)
		}
	})
}
