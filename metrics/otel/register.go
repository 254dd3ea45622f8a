package penstockotel

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Register has a meter read the engine, [penstock.Default] if that is nil, whenever metrics are
// collected, until Unregister is called on what it returns. Register each engine once, with a
// MeterProvider of its own if there are several. It returns an error if the meter does not make
// the instruments.
func Register(engine *core.Engine, options Options) (metric.Registration, error) {
	if engine == nil {
		engine = penstock.Default()
	}
	options = options.withDefaults()
	meter := options.meter()
	i, err := newInstruments(meter, engine.Kinds())
	if err != nil {
		return nil, fmt.Errorf("penstockotel: %w", err)
	}
	r := &reader{engine: engine, instruments: i, accumulator: &core.Accumulator{MaxResources: options.MaxResources}}
	registration, err := meter.RegisterCallback(r.read, i.all...)
	if err != nil {
		return nil, fmt.Errorf("penstockotel: %w", err)
	}
	return registration, nil
}

// reader reads an engine into instruments.
type reader struct {
	engine *core.Engine
	*instruments

	// mu guards what follows. It is held while the engine is read, so that concurrent
	// collections add their snapshots in order.
	mu          sync.Mutex
	accumulator *core.Accumulator // keeps attributeSets with the totals
}

// attributeSets are the attributes of the metrics of a resource.
type attributeSets struct{ resource, acquired, refused attribute.Set }

func newAttributeSets(name string) *attributeSets {
	resource := ResourceKey.String(name)
	return &attributeSets{
		resource: attribute.NewSet(resource),
		acquired: attribute.NewSet(resource, ResultKey.String(Acquired)),
		refused:  attribute.NewSet(resource, ResultKey.String(Refused)),
	}
}

func (r *reader) read(_ context.Context, o metric.Observer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.engine.Snapshot()
	shared := make(map[rule.Key]bool)
	for _, t := range r.accumulator.Add(&snapshot) {
		r.resource(o, t)
		r.refusedBy(o, t)
		if t.Index >= 0 {
			rules := snapshot.Resources[t.Index].Rules
			for i := range rules {
				r.rule(o, t.Name, &rules[i], shared)
			}
		}
	}
	r.engineWide(o, &snapshot)
	r.fleet(o, snapshot.Status.Fleet)
	return nil
}

func (r *reader) resource(o metric.Observer, t *core.ResourceTotals) {
	sets, made := t.Data.(*attributeSets)
	if !made {
		sets = newAttributeSets(t.Name)
		t.Data = sets
	}
	acquired, refused := metric.WithAttributeSet(sets.acquired), metric.WithAttributeSet(sets.refused)
	o.ObserveInt64(r.requests, number(t.Passed), acquired)
	o.ObserveInt64(r.requests, number(t.Blocked), refused)
	o.ObserveInt64(r.tokens, number(t.PassedTokens), acquired)
	o.ObserveInt64(r.tokens, number(t.BlockedTokens), refused)
	resource := metric.WithAttributeSet(sets.resource)
	o.ObserveInt64(r.failed, number(t.Failed), resource)
	o.ObserveInt64(r.active, t.InFlight, resource)
	o.ObserveInt64(r.queued, t.Waiting, resource)
}

// refusedBy observes what rules have refused on a resource.
func (r *reader) refusedBy(o metric.Observer, t *core.ResourceTotals) {
	for key, of := range t.Refusals {
		by := []attribute.KeyValue{ResourceKey.String(t.Name), KindKey.String(string(key.Kind)), RuleKey.String(key.Name)}
		if of.Shadow || of.WouldBlock > 0 {
			o.ObserveInt64(r.shadowRefusals, number(of.WouldBlock), metric.WithAttributes(by...))
		}
		if of.Demotes || of.Demoted > 0 {
			o.ObserveInt64(r.demotions, number(of.Demoted), metric.WithAttributes(by...))
		}
		o.ObserveInt64(r.refusals, number(of.Blocked), metric.WithAttributes(append(by, ReasonKey.String(of.Reason.String()))...))
	}
}

// rule observes the state of a rule on a resource. A limiter that several resources share is
// observed once, under the pattern of the rule.
func (r *reader) rule(o metric.Observer, resource string, of *core.RuleSnapshot, shared map[rule.Key]bool) {
	kind, name := KindKey.String(string(of.Kind)), RuleKey.String(valid(of.Name))
	on := func(more ...attribute.KeyValue) metric.ObserveOption {
		return metric.WithAttributes(append(more, ResourceKey.String(resource), kind, name)...)
	}
	if of.Quota != nil && !of.Quota.Prepaid {
		o.ObserveFloat64(r.limit, of.Quota.Effective/of.Quota.Window.Seconds(), on())
	}
	if target := of.Rule.Target(); target.Shared {
		key := rule.Key{Kind: of.Kind, Name: of.Name}
		if shared[key] {
			return
		}
		shared[key] = true
		resource = valid(target.Match)
	}
	if of.Quota != nil {
		if ratio, known := of.Quota.UsedRatio(); known {
			o.ObserveFloat64(r.used, ratio, on())
		}
		if left, known := of.Quota.Left(); known {
			o.ObserveFloat64(r.remaining, left, on())
		}
	}
	for i, gauge := range r.kinds[of.Kind] {
		if i >= len(of.Gauges) || math.IsNaN(of.Gauges[i]) {
			continue
		}
		if gauge.Label == "" {
			o.ObserveFloat64(gauge.instrument, of.Gauges[i], on())
		} else {
			o.ObserveFloat64(gauge.instrument, of.Gauges[i], on(attribute.String("penstock."+gauge.Label, gauge.LabelValue)))
		}
	}
	for _, state := range of.Rule.Type().States() {
		if of.State == "" {
			break // rules of the kind may have none
		}
		o.ObserveInt64(r.state, one(state == of.State), on(StateKey.String(state)))
	}
	for _, t := range of.Transitions {
		o.ObserveInt64(r.transitions, number(t.Count), on(FromKey.String(t.From), ToKey.String(t.To)))
	}
}

// engineWide observes the rules as a whole, their sources, signals, and the load.
func (r *reader) engineWide(o metric.Observer, s *core.Snapshot) {
	o.ObserveInt64(r.inForce, int64(s.Status.Rules))
	o.ObserveInt64(r.unmatched, int64(len(s.Status.Unmatched)+s.Status.MoreUnmatched))
	o.ObserveInt64(r.rejections, number(s.Rejected))
	for i := range s.Status.Sources {
		of := &s.Status.Sources[i]
		source := metric.WithAttributes(SourceKey.String(valid(of.Name)))
		o.ObserveInt64(r.connected, one(of.Connected), source)
		o.ObserveFloat64(r.staleness, of.Staleness(s.At).Seconds(), source)
	}
	for _, of := range s.Status.Signals {
		if of.Err == nil {
			o.ObserveFloat64(r.signal, of.Value, metric.WithAttributes(SignalKey.String(valid(string(of.Signal)))))
		}
	}
	if load, known := r.engine.PresentLoad(); known {
		o.ObserveFloat64(r.load, load.Utilization)
		o.ObserveInt64(r.loadLevel, int64(load.Level))
	}
}

// fleet observes how the engine shares limits, nil if it does not.
func (r *reader) fleet(o metric.Observer, of *core.FleetStatus) {
	if of == nil {
		return
	}
	o.ObserveInt64(r.fleetConnected, one(of.Connected))
	o.ObserveInt64(r.fleetInstances, int64(of.Instances))
	o.ObserveInt64(r.fleetOutages, of.Outages)
	o.ObserveInt64(r.fleetRequests, of.Requests)
	o.ObserveFloat64(r.fleetLatency, of.Latency.Seconds())
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// number converts a count.
func number(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// valid returns the name as valid UTF-8.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
