package penstockgin_test

import (
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

// A fault injected further down is a failure of the request, unlike another refusal.
func TestInjectedFaultFurtherDownIsAFailure(t *testing.T) {
	engine, clock := newEngine(t, core.Config{})
	until := clock.Now().Add(time.Hour).Time()
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{
		{Resource: "pay", Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: until},
	}}))
	server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		_, err := engine.Entry(c.Request.Context(), "pay")
		_ = c.AbortWithError(500, err)
	}))
	assert.Equal(t, 500, get(t, server, "/orders/7").status)
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}
