package penstockgin_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleForOneMethodOfAnyIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "POST:/login", Limit: 5}, {Resource: "POST:/orders", Limit: 5},
	}}))
	router := gin.New()
	router.Use(penstockgin.Middleware(engine, penstockgin.Options{}))
	router.Any("/login", func(c *gin.Context) { c.Status(http.StatusOK) })
	router.GET("/orders", func(c *gin.Context) { c.Status(http.StatusOK) })
	router.POST("/orders", func(c *gin.Context) { c.Status(http.StatusCreated) })
	call := func(method, path string) {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, http.NoBody))
	}
	call(http.MethodGet, "/orders")
	call(http.MethodPost, "/orders")
	call(http.MethodPost, "/login")
	assert.Empty(t, log.String())
	call(http.MethodPut, "/login")
	call(http.MethodPut, "/login")
	assert.Regexp(t, `^[^\n]*names one method of a route that serves all[^\n]*rule=POST:/login[^\n]*\n$`, log.String())
}
