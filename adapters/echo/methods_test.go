package penstockecho_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleForOneMethodOfAnyIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "POST:/login", Limit: 5}, {Resource: "POST:/orders", Limit: 5},
	}}))
	ok := func(c *echo.Context) error { return c.NoContent(http.StatusOK) }
	router := echo.New()
	router.Use(penstockecho.Middleware(engine, penstockecho.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	router.Any("/login", ok)
	router.GET("/orders", ok)
	router.POST("/orders", ok)
	for range 3 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders", http.NoBody))
	}
	assert.Empty(t, log.String())
	for range 3 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody))
	}
	assert.Regexp(t, `^[^\n]*names one method of a route that serves all[^\n]*rule=POST:/login[^\n]*\n$`, log.String())
}
