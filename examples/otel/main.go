// Otel shows Penstock beside the instrumentations of OpenTelemetry: an HTTP and a gRPC service
// with otelhttp and otelgrpc around the guards. Refused calls are events on the spans of those,
// and what the rules did is in the metrics of one provider.
//
//	go run ./examples/otel
//	go run ./examples/otel -otlp http://localhost:4318   # also sends all of it to a collector
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

func main() {
	collector := flag.String("otlp", "", "URL of a collector to send metrics and traces to, such as http://localhost:4318")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *collector); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, collector string) (err error) {
	seen, err := newTelemetry(ctx, collector, sdkmetric.CumulativeTemporalitySelector)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.shutdown(ctx)) }()
	engine, err := newEngine(seen)
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := callHTTP(ctx, engine, seen); err != nil {
		return err
	}
	if err := callGRPC(ctx, engine, seen); err != nil {
		return err
	}
	return show(ctx, w, seen)
}

// newEngine returns an engine that lets two calls of each service pass in an hour.
func newEngine(seen telemetry) (*core.Engine, error) {
	options := penstockotel.Options{MeterProvider: seen.meters}
	observer, err := penstockotel.NewObserver(core.Observer{}, options)
	if err != nil {
		return nil, err
	}
	engine := core.New(core.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	err = engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "orders-limit", Resource: "GET:/orders/{id}", Limit: 2, Window: time.Hour},
		{Name: "check-limit", Resource: "/grpc.health.v1.Health/Check", Limit: 2, Window: time.Hour},
	}})
	if err == nil {
		_, err = penstockotel.Register(engine, options)
	}
	for _, p := range seen.durations {
		p.Register(engine)
	}
	return engine, err
}

// callHTTP makes three calls of an HTTP service.
func callHTTP(ctx context.Context, engine *core.Engine, seen telemetry) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	guarded := nethttp.Middleware(engine, nethttp.Options{})(mux)
	server := httptest.NewServer(otelhttp.NewHandler(guarded, "orders",
		otelhttp.WithTracerProvider(seen.traces), otelhttp.WithMeterProvider(seen.meters)))
	defer server.Close()
	for range 3 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/7", http.NoBody)
		if err != nil {
			return err
		}
		response, err := server.Client().Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
	}
	return nil
}

// callGRPC makes three calls of a gRPC service.
func callGRPC(ctx context.Context, engine *core.Engine, seen telemetry) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(seen.traces), otelgrpc.WithMeterProvider(seen.meters))),
		grpc.ChainUnaryInterceptor(penstockgrpc.UnaryServerInterceptor(engine, penstockgrpc.Options{})),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.GracefulStop()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	for range 3 {
		_, _ = grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{}) // one is refused
	}
	return nil
}

// show prints the spans with their events, and some of the metrics.
func show(ctx context.Context, w io.Writer, seen telemetry) error {
	spans := seen.spans.Ended()
	slices.SortFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, span := range spans {
		fmt.Fprintf(w, "span %s\n", span.Name())
		for _, event := range span.Events() {
			if event.Name == penstockotel.RefusedEvent {
				fmt.Fprintf(w, "  %s by the rule %s\n", event.Name, text(event.Attributes, penstockotel.RuleKey))
			}
		}
	}
	var collected metricdata.ResourceMetrics
	if err := seen.reader.Collect(ctx, &collected); err != nil {
		return err
	}
	var lines []string
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			lines = append(lines, linesOf(m)...)
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return nil
}

// linesOf returns the counts of what Penstock decided, and of otelhttp's requests.
func linesOf(m metricdata.Metrics) (lines []string) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			if of := p.Attributes.ToSlice(); m.Name == "penstock.requests" {
				lines = append(lines, fmt.Sprintf("%s %s %s: %d", m.Name,
					text(of, penstockotel.ResourceKey), text(of, penstockotel.ResultKey), p.Value))
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			if m.Name == "http.server.request.duration" {
				status := text(p.Attributes.ToSlice(), "http.response.status_code")
				lines = append(lines, fmt.Sprintf("%s %s: %d", m.Name, status, p.Count))
			}
		}
	}
	return lines
}

// text returns the value of an attribute.
func text(attributes []attribute.KeyValue, key attribute.Key) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}
