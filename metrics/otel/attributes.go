package penstockotel

import "go.opentelemetry.io/otel/attribute"

// The keys of attributes of metrics and events.
const (
	ResourceKey   = attribute.Key("penstock.resource")
	ResultKey     = attribute.Key("penstock.result")
	KindKey       = attribute.Key("penstock.rule.kind")
	RuleKey       = attribute.Key("penstock.rule.name")
	ReasonKey     = attribute.Key("penstock.reason")
	StateKey      = attribute.Key("penstock.state")
	FromKey       = attribute.Key("penstock.state.from")
	ToKey         = attribute.Key("penstock.state.to")
	SourceKey     = attribute.Key("penstock.source")
	SignalKey     = attribute.Key("penstock.signal.name")
	RetryAfterKey = attribute.Key("penstock.retry_after") // seconds
	WaitKey       = attribute.Key("penstock.wait")        // seconds
)

// The values of [ResultKey].
const (
	Acquired = "acquired" // the call has passed
	Refused  = "refused"  // a rule refused it
	Canceled = "canceled" // its context ended while it waited, or the engine was closed
)

// The names of events on spans.
const (
	RefusedEvent = "penstock.refused"
	WaitedEvent  = "penstock.waited"
)
