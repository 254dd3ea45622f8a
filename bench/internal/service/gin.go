package service

import (
	"net/http"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/gin-gonic/gin"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
)

func newGin(guard Guard, limit int) (*Service, error) {
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	switch guard {
	case Penstock:
		engine, err := penstockEngine(resource, limit)
		if err != nil {
			return nil, err
		}
		router.Use(penstockgin.Middleware(engine, penstockgin.Options{}))
	case Sentinel:
		if err := limitSentinel(resource, limit); err != nil {
			return nil, err
		}
		router.Use(sentinelGin)
	case Bare:
	}
	router.GET(route, func(c *gin.Context) { c.String(http.StatusOK, "ok") })
	return overHTTP(router), nil
}

func sentinelGin(c *gin.Context) {
	entry, blocked := enterSentinel(c.Request.Method+":"+c.FullPath(), base.ResTypeWeb)
	if blocked != nil {
		c.AbortWithStatus(http.StatusTooManyRequests)
		return
	}
	defer entry.Exit()
	c.Next()
}
