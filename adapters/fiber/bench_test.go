package penstockfiber_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v3"

	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
)

// BenchmarkRouteResource shows what it costs to name a request, in Use, where the route is
// looked up, and at the route, where fiber knows it.
func BenchmarkRouteResource(b *testing.B) {
	for _, place := range []string{"use", "route"} {
		b.Run(place, func(b *testing.B) {
			name := penstockfiber.RouteResource()
			app := service(func(c fiber.Ctx) error {
				for b.Loop() {
					name(c)
				}
				return nil
			}, place, ok)
			b.ReportAllocs()
			app.Handler()(requestOf(httptest.NewRequest(http.MethodGet, "/v1/items/7", http.NoBody)))
		})
	}
}
