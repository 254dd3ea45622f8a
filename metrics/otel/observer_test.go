package penstockotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

// traced runs a test on the system's clock, in a bubble, with a function that makes a call in
// a span and returns the events of the span.
func traced(t *testing.T, next core.Observer, test func(t *testing.T, s *service, call func(resource string, ctx context.Context) []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
		s := &service{reader: sdk.NewManualReader()}
		options := penstockotel.Options{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(s.reader)), MaxResources: 2}
		observer, err := penstockotel.NewObserver(next, options)
		require.NoError(t, err)
		s.Engine = core.New(core.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
		defer s.Close()
		require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{
			{Name: "none", Resource: "none", Limit: 0},
			{Name: "few", Resource: "few", Limit: 1},
			{Name: "slow", Match: "slow*", Limit: 1, Algorithm: flow.Throttle, MaxWait: 10 * time.Second},
		}}))
		test(t, s, func(resource string, ctx context.Context) (events []string) {
			ctx, span := tracer.Start(ctx, resource)
			guard, _ := s.Entry(ctx, resource)
			guard.Exit()
			span.End()
			ended := recorder.Ended()
			for _, e := range ended[len(ended)-1].Events() {
				events = append(events, e.Name+attributesOf(e.Attributes))
			}
			return events
		})
	})
}

func TestSpansHaveEventsOfRefusalsAndWaits(t *testing.T) {
	t.Parallel()
	var refusals, waits int
	next := core.Observer{
		Refused: func(context.Context, *core.BlockError) { refusals++ },
		Waited:  func(context.Context, core.Wait) { waits++ },
	}
	traced(t, next, func(t *testing.T, s *service, call func(string, context.Context) []string) {
		ctx := t.Context()
		assert.Empty(t, call("few", ctx), "a call that passes at once")
		assert.Equal(t, []string{"penstock.refused{resource=few rule.kind=flow rule.name=few reason=rateLimited retry_after=1}"}, call("few", ctx))
		assert.Equal(t, []string{"penstock.refused{resource=none rule.kind=flow rule.name=none reason=rateLimited}"}, call("none", ctx))
		assert.Empty(t, call("slow", ctx))
		assert.Equal(t, []string{"penstock.waited{resource=slow wait=1 result=acquired}"}, call("slow", ctx))
		canceled, cancel := context.WithCancel(ctx)
		time.AfterFunc(250*time.Millisecond, cancel)
		assert.Equal(t, []string{"penstock.waited{resource=slow wait=0.25 result=canceled}"}, call("slow", canceled))
		assert.Equal(t, 2, refusals)
		assert.Equal(t, 2, waits)

		// Refusals and waits were measured in sampled spans.
		assert.Equal(t, []string{
			"penstock.request.time_in_queue{resource=slow result=acquired} count 1 sum 1 exemplars 1",
			"penstock.request.time_in_queue{resource=slow result=canceled} count 1 sum 0.25 exemplars 1",
			"penstock.traced_refusals{reason=rateLimited resource=few rule.kind=flow rule.name=few} 1 exemplars 1",
			"penstock.traced_refusals{reason=rateLimited resource=none rule.kind=flow rule.name=none} 1 exemplars 1",
		}, s.collect(t))
	})
}

func TestCallsWithoutASpanAreMeasuredToo(t *testing.T) {
	t.Parallel()
	traced(t, core.Observer{}, func(t *testing.T, s *service, _ func(string, context.Context) []string) {
		s.calls("none", 1)
		s.calls("slow", 2)
		assert.Equal(t, []string{
			"penstock.request.time_in_queue{resource=slow result=acquired} count 1 sum 1 exemplars 0",
		}, s.collect(t))
	})
}

func TestTimeInQueueHasABoundedNumberOfSeries(t *testing.T) {
	t.Parallel()
	traced(t, core.Observer{}, func(t *testing.T, s *service, _ func(string, context.Context) []string) {
		for i := range 5 {
			s.calls("slow"+strconv.Itoa(i), 2)
		}
		var want []string
		for _, of := range []string{"(other)", "slow0", "slow1"} {
			n := 1
			if of == "(other)" {
				n = 3
			}
			want = append(want, fmt.Sprintf("penstock.request.time_in_queue{resource=%s result=acquired} count %d sum %d exemplars 0", of, n, n))
		}
		assert.Equal(t, want, s.collect(t))
	})
}
