package penstockfiber_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleForOneMethodOfARouteThatServesAllIsWarnedOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		add    func(app *fiber.App)
		rule   flow.Rule
		warned bool
	}{
		{"All", func(app *fiber.App) { app.All("/login", ok) }, flow.Rule{Resource: "POST:/login", Limit: 5}, true},
		{"All in a group", func(app *fiber.App) { app.Group("/api").All("/login", ok) }, flow.Rule{Resource: "POST:/api/login", Limit: 5}, true},
		{"All, and all in the rule", func(app *fiber.App) { app.All("/login", ok) }, flow.Rule{Match: "*:/login", Limit: 5}, false},
		{"Get and Post", func(app *fiber.App) { app.Get("/login", ok).Post("/login", ok) }, flow.Rule{Resource: "POST:/login", Limit: 5}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{test.rule}})
			var log bytes.Buffer
			app := fiber.New()
			app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))
			test.add(app)
			for range 2 {
				request := new(fasthttp.RequestCtx)
				request.Request.Header.SetMethod("POST")
				request.Request.SetRequestURI("/login")
				if strings.Contains(test.name, "group") {
					request.Request.SetRequestURI("/api/login")
				}
				app.Handler()(request)
				require.Equal(t, fiber.StatusOK, request.Response.StatusCode())
			}
			assert.Equal(t, test.warned, strings.Count(log.String(), "serves all methods") == 1, log.String())
		})
	}
}
