package penstockfiber_test

import (
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

func TestCallThatARuleFailsHoldsNothing(t *testing.T) {
	for name, fields := range map[string]nethttp.Fields{"fields": {Always: true}, "long-lived": {}} {
		t.Run(name, func(t *testing.T) {
			adaptertest.RequireFailsAndHoldsNothing(t, func(_ *testing.T, engine *core.Engine) {
				app := fiber.New()
				app.Get("/orders/:id", penstockfiber.Middleware(engine, penstockfiber.Options{Fields: fields}), func(c fiber.Ctx) error {
					c.Set("Content-Type", "text/event-stream")
					return c.SendString("data: 1\n\n")
				})
				request := new(fasthttp.RequestCtx)
				request.Request.SetRequestURI("/orders/1")
				app.Handler()(request)
			})
		})
	}
}
