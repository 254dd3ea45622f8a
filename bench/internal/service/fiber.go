package service

import (
	"net"
	"net/http"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
)

func newFiber(guard Guard, limit int) (*Service, error) {
	app := fiber.New()
	switch guard {
	case Penstock:
		engine, err := penstockEngine(resource, limit)
		if err != nil {
			return nil, err
		}
		app.Use(penstockfiber.Middleware(engine, penstockfiber.Options{}))
	case Sentinel:
		if err := limitSentinel(http.MethodGet+":"+path, limit); err != nil {
			return nil, err
		}
		app.Use(sentinelFiber)
	case Bare:
	}
	app.Get(route, func(c fiber.Ctx) error { return c.SendString("ok") })

	handler := app.Handler()
	var call fasthttp.RequestCtx
	call.Init(new(fasthttp.Request), nil, nil)
	call.Request.Header.SetMethod(http.MethodGet)
	call.Request.SetRequestURI(path)
	return &Service{
		Call: func() bool {
			call.Response.Reset()
			call.ResetUserValues()
			handler(&call)
			return call.Response.StatusCode() == http.StatusOK
		},
		serve: func(l net.Listener) error {
			return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
		},
		stop: func() { _ = app.Shutdown() },
		dial: dialHTTP,
	}, nil
}

// sentinelFiber names calls by their paths, as the adapter of sentinel-golang does.
func sentinelFiber(c fiber.Ctx) error {
	entry, blocked := enterSentinel(c.Route().Method+":"+string(c.RequestCtx().Path()), base.ResTypeWeb)
	if blocked != nil {
		return c.SendStatus(http.StatusTooManyRequests)
	}
	defer entry.Exit()
	return c.Next()
}
