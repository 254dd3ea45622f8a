package penstockfiber_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// fasthttp has one goroutine for the date of responses, from the first one on.
	response, err := fiber.New().Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if err != nil {
		panic(err)
	}
	_ = response.Body.Close()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

const orders = "GET:/orders/:id"

// eventTimeout is how long a test waits for an expected event, interval is how often it
// looks.
const (
	eventTimeout = 2 * time.Minute
	interval     = time.Millisecond
)

func ok(c fiber.Ctx) error { return c.SendString("ok") }
