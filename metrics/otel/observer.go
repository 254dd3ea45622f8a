package penstockotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// NewObserver returns an observer for [core.Config] that adds events to the spans of calls that
// were refused or waited, measures waits, and counts the refusals within sampled spans. It calls
// the functions of next too. It returns an error if the meter does not make the instruments.
func NewObserver(next core.Observer, options Options) (core.Observer, error) {
	options = options.withDefaults()
	meter := options.meter()
	timeInQueue, err := meter.Float64Histogram("penstock.request.time_in_queue",
		metric.WithUnit("s"), metric.WithDescription("How long calls waited, however their waits ended."),
		metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
	if err != nil {
		return core.Observer{}, fmt.Errorf("penstockotel: %w", err)
	}
	traced, err := meter.Int64Counter("penstock.traced_refusals",
		metric.WithUnit("{request}"), metric.WithDescription("Calls within a sampled span that a rule refused."))
	if err != nil {
		return core.Observer{}, fmt.Errorf("penstockotel: %w", err)
	}
	o := &observer{next: next, timeInQueue: timeInQueue, traced: traced}
	o.waiting.most, o.refusing.most = options.MaxResources, options.MaxResources
	joined := next
	joined.Refused, joined.Waited = o.refused, o.waited
	return joined, nil
}

type observer struct {
	next        core.Observer
	timeInQueue metric.Float64Histogram
	traced      metric.Int64Counter // of refusals: each has its trace as an exemplar
	waiting     names               // resources whose calls wait
	refusing    names               // resources that refused a traced call
}

func (o *observer) refused(ctx context.Context, err *core.BlockError) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		by := []attribute.KeyValue{
			KindKey.String(string(err.Kind)), RuleKey.String(valid(err.Rule)), ReasonKey.String(err.Reason.String()),
		}
		span.AddEvent(RefusedEvent, trace.WithAttributes(eventOf(err, by)...))
		if span.SpanContext().IsSampled() {
			o.traced.Add(ctx, 1, metric.WithAttributes(append(by, ResourceKey.String(o.refusing.bounded(valid(err.Resource))))...))
		}
	}
	if o.next.Refused != nil {
		o.next.Refused(ctx, err)
	}
}

// eventOf returns the attributes of the event of a refusal, given those of the rule.
func eventOf(err *core.BlockError, by []attribute.KeyValue) []attribute.KeyValue {
	attributes := append([]attribute.KeyValue{ResourceKey.String(valid(err.Resource))}, by...)
	if err.RetryAfter > 0 && err.RetryAfter != rule.Never {
		attributes = append(attributes, RetryAfterKey.Float64(err.RetryAfter.Seconds()))
	}
	return attributes
}

func (o *observer) waited(ctx context.Context, wait core.Wait) {
	result := ResultKey.String(resultOf(wait.Err))
	seconds := wait.Duration.Seconds()
	o.timeInQueue.Record(ctx, seconds, metric.WithAttributes(ResourceKey.String(o.waiting.bounded(valid(wait.Resource))), result))
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(WaitedEvent, trace.WithAttributes(ResourceKey.String(valid(wait.Resource)), WaitKey.Float64(seconds), result))
	}
	if o.next.Waited != nil {
		o.next.Waited(ctx, wait)
	}
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return Acquired
	case errors.Is(err, core.ErrBlocked):
		return Refused
	default:
		return Canceled
	}
}

// names are the resources that have series of their own: those that come first.
type names struct {
	most int

	mu    sync.Mutex
	known map[string]bool
}

// bounded returns a name, or [rule.OtherResources] if there are too many.
func (n *names) bounded(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.known[name]:
		return name
	case len(n.known) >= n.most:
		return rule.OtherResources
	case n.known == nil:
		n.known = make(map[string]bool)
	}
	n.known[name] = true
	return name
}
