package penstockchi_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleForOneMethodOfHandleIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Resource: "POST:/v1/login", Limit: 5}, {Resource: "POST:/v1/orders", Limit: 5},
	}}))
	ok := func(http.ResponseWriter, *http.Request) {}
	router := chi.NewRouter()
	router.Use(penstockchi.Middleware(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	router.Route("/v1", func(r chi.Router) {
		r.HandleFunc("/login", ok)
		r.Get("/orders", ok)
		r.Post("/orders", ok)
	})
	for range 3 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/orders", http.NoBody))
	}
	assert.Empty(t, log.String())
	for range 3 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/login", http.NoBody))
	}
	assert.Regexp(t, `^[^\n]*names one method of a route that serves all[^\n]*rule=POST:/v1/login[^\n]*\n$`, log.String())
}
