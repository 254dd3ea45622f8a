package service

import (
	"context"
	"fmt"
	"net/http"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	kratoshttp "github.com/go-kratos/kratos/v2/transport/http"

	penstockkratos "github.com/penstock-go/penstock/adapters/kratos"
)

// Kratos has templates of its own. Penstock names its calls by their operation, Sentinel those
// over HTTP by the template.
const (
	kratosRoute     = "/orders/{id}"
	kratosOperation = "/bench.Orders/Get"
)

func newKratos(guard Guard, limit int) (*Service, error) {
	var guards []middleware.Middleware
	switch guard {
	case Penstock:
		engine, err := penstockEngine(kratosOperation, limit)
		if err != nil {
			return nil, err
		}
		guards = append(guards, penstockkratos.Server(engine, penstockkratos.Options{}))
	case Sentinel:
		if err := limitSentinel(http.MethodGet+":"+kratosRoute, limit); err != nil {
			return nil, err
		}
		guards = append(guards, sentinelKratos)
	case Bare:
	}
	server := kratoshttp.NewServer(kratoshttp.Middleware(guards...), kratoshttp.Timeout(0))
	server.Route("/").GET(kratosRoute, handleKratos)
	return overHTTP(server), nil
}

// handleKratos is what kratos generates for a method over HTTP.
func handleKratos(c kratoshttp.Context) error {
	kratoshttp.SetOperation(c, kratosOperation)
	method := func(context.Context, any) (any, error) { return "ok", nil }
	reply, err := c.Middleware(method)(c, nil)
	if err != nil {
		return err
	}
	return c.String(http.StatusOK, reply.(string))
}

func sentinelKratos(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, request any) (any, error) {
		of, ok := transport.FromServerContext(ctx)
		if !ok || of.Kind() != transport.KindHTTP {
			return nil, errors.BadRequest("transport", "not of HTTP")
		}
		call := of.(kratoshttp.Transporter)
		entry, blocked := enterSentinel(fmt.Sprintf("%s:%s", call.Request().Method, call.PathTemplate()), base.ResTypeWeb)
		if blocked != nil {
			return nil, errors.New(http.StatusTooManyRequests, "blocked", blocked.Error())
		}
		defer entry.Exit()
		return next(ctx, request)
	}
}
