package penstockkratos_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
)

func TestCallsReachTheirRulesBeforeOthersCompute(t *testing.T) {
	adaptertest.CheckYield(t, func(entering, handling func()) (call func()) {
		options := penstockkratos.Options{Resource: func(context.Context, string) string {
			entering()
			return "compute"
		}}
		serve := penstockkratos.Server(newEngine(t), options)(func(context.Context, any) (any, error) {
			handling()
			return nil, nil //nolint:nilnil // does nothing
		})
		return func() {
			_, err := serve(context.Background(), nil)
			assert.NoError(t, err)
		}
	})
}
