// Package orcaload reports how loaded a gRPC server is to the balancers of its clients, by ORCA: as the
// application utilization and the calls per second, with the trailers of each call, out of band, or both.
//
//	options := penstockgrpc.Options{ReportLoad: true}
//	server := grpc.NewServer(append(
//		orcaload.ServerOptions(engine), // with each call
//		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, options)),
//	)...)
//	err := orca.Register(server, orca.ServiceOptions{ServerMetricsProvider: orcaload.Metrics(engine)}) // out of band
package orcaload

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/orca"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Metrics returns what package orca asks for the metrics of a server: its application utilization is that
// of [core.Engine.PresentLoad], from 0 to 1 the share of the places that are taken, more where calls wait,
// and up to 2 where calls are refused; and how many calls pass in a second, without which balancers cannot
// weigh it. Nothing else is reported. The engine nil stands for
// [penstock.Default]. It is measured on the resources of calls that interceptors with ReportLoad guard.
func Metrics(engine *core.Engine) orca.ServerMetricsProvider {
	if engine == nil {
		engine = penstock.Default()
	}
	return metrics{engine}
}

type metrics struct{ engine *core.Engine }

const unset = -1 // of a metric that is not reported

// ServerMetrics implements [orca.ServerMetricsProvider].
func (m metrics) ServerMetrics() *orca.ServerMetrics {
	utilization, rate := float64(unset), float64(unset)
	if load, ok := m.engine.PresentLoad(); ok {
		utilization, rate = load.Utilization, load.Rate
	}
	return &orca.ServerMetrics{
		AppUtilization: utilization, QPS: rate,
		CPUUtilization: unset, MemUtilization: unset, EPS: unset,
		Utilization: map[string]float64{}, RequestCost: map[string]float64{}, NamedMetrics: map[string]float64{},
	}
}

// ServerOptions returns the options of a server that sends [Metrics] in the trailers of each call, also of
// those that are refused. They come before the interceptors that guard calls.
func ServerOptions(engine *core.Engine) []grpc.ServerOption {
	return []grpc.ServerOption{
		orca.CallMetricsServerOption(Metrics(engine)),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			report(ctx)
			return handler(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			report(stream.Context())
			return handler(service, stream)
		}),
	}
}

// report has package orca send metrics for a call: it does so only for calls that have asked for its
// recorder.
func report(ctx context.Context) { orca.CallMetricsRecorderFromContext(ctx) }
