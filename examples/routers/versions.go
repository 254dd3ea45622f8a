//go:build versions

package routers

// The newest versions of the routers that have adapters, with which the workspace tests
// those.
import (
	_ "github.com/go-chi/chi/v5"
	_ "github.com/gofiber/fiber/v3"
	_ "github.com/labstack/echo/v5"
)
