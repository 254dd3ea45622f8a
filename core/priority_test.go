package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestContextCarriesThePriorityThatItWasGivenLast(t *testing.T) {
	t.Parallel()
	p, ok := core.PriorityFromContext(t.Context())
	assert.False(t, ok)
	assert.Equal(t, rule.PriorityNormal, p)
	ctx := core.ContextWithPriority(core.ContextWithPriority(t.Context(), rule.PriorityCritical), rule.PriorityLow)
	p, ok = core.PriorityFromContext(context.WithoutCancel(ctx))
	assert.True(t, ok)
	assert.Equal(t, rule.PriorityLow, p)
}
