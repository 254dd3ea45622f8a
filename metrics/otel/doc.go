// Package penstockotel exposes what an engine knows through OpenTelemetry: metrics, and events
// on the spans of calls that were refused or had to wait.
//
//	observer, err := penstockotel.NewObserver(core.Observer{}, penstockotel.Options{})
//	...
//	engine := core.New(core.Config{Observer: observer})
//	registration, err := penstockotel.Register(engine, penstockotel.Options{})
//
// [Register] has the meter read the engine whenever metrics are collected; it adds nothing to
// a call. [NewObserver] costs calls that pass at once nothing either. It looks only at calls that
// are refused, and at those that waited.
//
// The package needs the API of OpenTelemetry alone. It works beside otelhttp and otelgrpc:
// put those further out than the middleware or interceptor of Penstock, so that the span is
// there when a call is refused. They measure durations of requests; this package adds what
// Penstock made of them. Package durations has the durations of all calls, as a producer for the
// readers of the SDK.
//
// # Metrics
//
// The names follow those of ASP.NET Core's rate limiting (aspnetcore.rate_limiting.*), of which
// the second column is the counterpart. Of each resource, with the attribute penstock.resource:
//
//	penstock.requests               requests               counter        calls, by penstock.result: "acquired" or "refused"
//	penstock.active_requests        active_request_leases  up-down        calls under way
//	penstock.queued_requests        queued_requests        up-down        calls that wait
//	penstock.request.time_in_queue  request.time_in_queue  histogram, s   waits, by penstock.result: "acquired", "refused" or "canceled"
//	penstock.failed_requests                               counter        calls that ended with a failure
//	penstock.tokens                                        counter        tokens that calls asked for when they entered, by penstock.result
//	penstock.request.duration       request_lease.duration histogram, s   from pass to end: of package durations
//
// The histogram of waits is that of [NewObserver]. Its measurements are made with the context of
// the call, so that the SDK attaches traces to them as exemplars. Refusals are counted by the
// engine, and read without a context. So NewObserver also counts those within sampled spans, with
// the attributes of penstock.rule.refusals; each has its trace as an exemplar:
//
//	penstock.traced_refusals       counter      calls within a sampled span that a rule refused
//
// Of each rule in force, with the attributes penstock.resource, penstock.rule.kind and
// penstock.rule.name:
//
//	penstock.rule.refusals         counter      calls that it refused, with penstock.reason
//	penstock.rule.shadow_refusals  counter      calls that it would have refused while it was a shadow
//	penstock.rule.demotions        counter      calls that it gave the lowest priority in place of refusing them
//	penstock.rule.limit            gauge        tokens per second that it lets pass now
//	penstock.rule.state            gauge        1 for the present state (penstock.state) of a circuit breaker, 0 for the others
//	penstock.rule.transitions      counter      changes of the state, with penstock.state.from and penstock.state.to
//	penstock.<kind>.<gauge>        gauge        what the kind shows beside, such as penstock.isolation.in_flight
//	penstock.<kind>.<counter>      counter      what it counts, such as penstock.adaptive.shed
//
// Of the engine:
//
//	penstock.rule.in_force         gauge        rules in force
//	penstock.rule.unmatched        gauge        rules in force that no call has matched
//	penstock.document.rejections   counter      rule documents that could not be applied
//	penstock.source.connected      gauge        1 if the source of rules (penstock.source) could be read when last tried
//	penstock.source.staleness      gauge, s     since when it is not known what the source holds
//	penstock.signal                gauge        what a signal of the system (penstock.signal.name) shows
//	penstock.load                  gauge        how loaded the resources are that guards were asked about: core.Engine.PresentLoad; else missing
//	penstock.load.level            gauge        its level, from 0 for none to 4 for shedding
//	penstock.fleet.connected       gauge        1 if the backend of the fleet answers
//	penstock.fleet.instances       gauge        instances of the fleet, as last known
//	penstock.fleet.outages         counter      outages of the backend that have begun
//	penstock.fleet.requests        counter      requests to the backend
//	penstock.fleet.latency         gauge, s     how long answers of the backend took of late
//
// # Cardinality
//
// No more than [Options.MaxResources] resources have series of their own: first those that rules
// name, then others, until the engine forgets them. All others are summed up as the resource
// "(other)", and there the rules that name one resource as the rule "(other)". Values of
// attributes, such as users or addresses, are in no attribute of a metric or an event: clients
// choose them.
//
// Newer versions of the SDK have a bound of their own, by default 2,000 sets of attributes for
// each instrument; what is beyond gets the attribute otel.metric.overflow in place of its own. Of
// penstock.requests there are two for each resource, and of metrics of rules one or more for each
// rule. With more than a few hundred resources, raise it: sdkmetric.WithCardinalityLimit(20_000).
//
// # Events
//
// On the span of the context with which Entry is called, if it is recording:
//
//	penstock.refused  penstock.resource, penstock.rule.kind, penstock.rule.name, penstock.reason, penstock.retry_after (s, if known)
//	penstock.waited   penstock.resource, penstock.wait (s), penstock.result
package penstockotel
