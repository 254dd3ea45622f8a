// Package durations exposes how long calls took through OpenTelemetry: the histogram that the
// engine keeps of each resource anyway. Nothing is added to a call.
//
//	producer := durations.NewProducer(durations.Options{})
//	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(producer))
//	...
//	engine := core.New(config)
//	producer.Register(engine)
//
// Instruments that are read, as those of package penstockotel, cannot be histograms. So this is
// a producer for the readers of the SDK, on which the package depends for that reason. It is
// worth having where calls are not measured otherwise: otelhttp and otelgrpc have the durations
// of requests.
//
// # Metric
//
//	penstock.request.duration  histogram, s  from when a call passed to its end, of each resource (penstock.resource)
//
// Its counterpart is aspnetcore.rate_limiting.request_lease.duration. The time that a call waited
// before it passed is in penstock.request.time_in_queue. Resources that rules name have series of
// their own first, then others; those beyond [Options.MaxResources] are the resource "(other)".
//
// The engine keeps durations in buckets at most a sixteenth of their value wide. Each of these
// counts, as a whole, in the bucket of the histogram in which its middle is. So a duration that
// is less than 3.2 % away from a bound may count beside it, and no count ever goes down.
// Exemplars there are none: the engine does not keep who called.
package durations
