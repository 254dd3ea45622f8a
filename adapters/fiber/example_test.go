package penstockfiber_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets two calls of a resource a second pass. Its clock stands
// still, as the output of an example must not depend on time.
func exampleEngine(resource string) *core.Engine {
	engine := core.New(core.Config{
		Clock:  clock.NewVirtual(time.Unix(0, 0)),
		Logger: slog.New(slog.DiscardHandler),
	})
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "two-a-second", Resource: resource, Limit: 2}}})
	if err != nil {
		panic(err)
	}
	return engine
}

// get has an App answer a request.
func get(app *fiber.App, path string) *http.Response {
	response, err := app.Test(httptest.NewRequest(http.MethodGet, path, http.NoBody))
	if err != nil {
		panic(err)
	}
	return response
}

func ExampleMiddleware() {
	app := fiber.New()
	app.Use(recover.New(), penstockfiber.Middleware(exampleEngine("GET:/orders/:id"), penstockfiber.Options{}))
	app.Get("/orders/:id", func(c fiber.Ctx) error { return c.SendString("order " + c.Params("id")) })

	for id := range 3 {
		response := get(app, fmt.Sprintf("/orders/%d", id))
		fmt.Printf("%d %q\n", response.StatusCode, response.Header.Get("RateLimit"))
		_ = response.Body.Close()
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "\"p-dae92c4f8974\";r=0;t=1"
}

// Health checks stay unguarded, everything else is named by its route. Refusals are
// answered by the ErrorHandler.
func ExampleOptions() {
	route := penstockfiber.RouteResource()
	app := fiber.New()
	app.Use(penstockfiber.Middleware(exampleEngine("GET:/orders/:id"), penstockfiber.Options{
		Resource: func(c fiber.Ctx) string {
			if c.Path() == "/healthz" {
				return ""
			}
			return route(c)
		},
		Attributes: func(c fiber.Ctx) []core.Option {
			return []core.Option{core.String("user", strings.Clone(c.Get("X-User")))} // a copy
		},
		Blocked: func(_ fiber.Ctx, block *core.BlockError) error {
			return fiber.NewError(http.StatusTooManyRequests, "limited by "+block.Rule)
		},
	}))
	app.Get("/healthz", func(c fiber.Ctx) error { return c.SendString("healthy") })
	app.Get("/orders/:id", func(c fiber.Ctx) error { return c.SendString("order " + c.Params("id")) })

	for _, path := range []string{"/orders/1", "/orders/2", "/orders/3", "/healthz"} {
		response := get(app, path)
		body, _ := io.ReadAll(response.Body)
		fmt.Println(response.StatusCode, string(body))
		_ = response.Body.Close()
	}
	// Output:
	// 200 order 1
	// 200 order 2
	// 429 limited by two-a-second
	// 200 healthy
}
