package penstockgin_test

import (
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

func TestInjectedFaultIsAnsweredAsItsRuleSays(t *testing.T) {
	engine, clock := newEngine(t, core.Config{})
	until := clock.Now().Add(time.Hour).Time()
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{
		{Resource: orders, Percent: 100, Abort: fault.Abort{HTTP: 502}, Until: until},
	}}))
	server := serve(t, router(engine, penstockgin.Options{}, ok))
	refused := get(t, server, "/orders/7")
	assert.Equal(t, 502, refused.status)
	assert.Contains(t, refused.body, "the fault is injected on purpose")
	require.NoError(t, engine.ControlKind(rules.KindFault, fault.Off))
	assert.Equal(t, 200, get(t, server, "/orders/7").status)
}

// A fault injected further down is a failure of the request, unlike another refusal.
func TestInjectedFaultFurtherDownIsAFailure(t *testing.T) {
	engine, clock := newEngine(t, core.Config{})
	until := clock.Now().Add(time.Hour).Time()
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{
		{Resource: "pay", Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: until},
	}}))
	server := serve(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		_, err := engine.Entry(c.Request.Context(), "pay")
		_ = c.AbortWithError(500, err)
	}))
	assert.Equal(t, 500, get(t, server, "/orders/7").status)
	assert.EqualValues(t, 1, requireEnded(t, engine, orders, 1).Failed)
}
