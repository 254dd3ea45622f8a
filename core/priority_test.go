package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
)

func TestContextCarriesThePriorityThatItWasGivenLast(t *testing.T) {
	t.Parallel()
	p, ok := core.PriorityFromContext(t.Context())
	assert.False(t, ok)
	assert.Equal(t, core.PriorityNormal, p)
	ctx := core.ContextWithPriority(core.ContextWithPriority(t.Context(), core.PriorityCritical), core.PriorityLow)
	p, ok = core.PriorityFromContext(context.WithoutCancel(ctx))
	assert.True(t, ok)
	assert.Equal(t, core.PriorityLow, p)
}
