package service

import (
	"net/http"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/labstack/echo/v5"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
)

func newEcho(guard Guard, limit int) (*Service, error) {
	router := echo.New()
	switch guard {
	case Penstock:
		engine, err := penstockEngine(resource, limit)
		if err != nil {
			return nil, err
		}
		router.Use(penstockecho.Middleware(engine, penstockecho.Options{}))
	case Sentinel:
		if err := limitSentinel(resource, limit); err != nil {
			return nil, err
		}
		router.Use(sentinelEcho)
	case Bare:
	}
	router.GET(route, func(c *echo.Context) error { return c.String(http.StatusOK, "ok") })
	return overHTTP(router), nil
}

func sentinelEcho(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		entry, blocked := enterSentinel(c.Request().Method+":"+c.Path(), base.ResTypeWeb)
		if blocked != nil {
			return c.JSON(http.StatusTooManyRequests, "too many requests")
		}
		defer entry.Exit()
		return next(c)
	}
}
