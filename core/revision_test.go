package core_test

import (
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRevisionIsThatOfTheRulesInForce(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	assert.Equal(t, engine.Status().Revision, engine.Revision())
	for limit := range 3 {
		before := engine.Revision()
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: float64(limit)}}}))
		assert.Greater(t, engine.Revision(), before)
		assert.Equal(t, engine.Status().Revision, engine.Revision())
	}
	engine.Close()
	assert.Equal(t, uint64(math.MaxUint64), engine.Revision())
}
