package penstockotel

import (
	"errors"
	"strings"

	"go.opentelemetry.io/otel/metric"

	"github.com/penstock-go/penstock/rule"
)

// instruments are those that are read from a snapshot of the engine.
type instruments struct {
	requests, tokens, failed metric.Int64ObservableCounter
	active, queued           metric.Int64ObservableUpDownCounter

	refusals, shadowRefusals, demotions, transitions metric.Int64ObservableCounter
	limit, used, remaining                           metric.Float64ObservableGauge
	state                                            metric.Int64ObservableGauge
	kinds                                            map[rule.Kind][]kindInstrument // in the order of the kind's gauges

	inForce, unmatched, connected metric.Int64ObservableGauge
	rejections                    metric.Int64ObservableCounter
	staleness, signal             metric.Float64ObservableGauge
	load                          metric.Float64ObservableGauge
	loadLevel                     metric.Int64ObservableGauge

	fleetConnected, fleetInstances metric.Int64ObservableGauge
	fleetOutages, fleetRequests    metric.Int64ObservableCounter
	fleetLatency                   metric.Float64ObservableGauge

	all []metric.Observable
}

// kindInstrument is the instrument of one gauge of a kind. Gauges that a label tells apart
// share one.
type kindInstrument struct {
	rule.Gauge
	instrument metric.Float64Observable
}

// maker makes instruments, and collects errors.
type maker struct {
	meter metric.Meter
	all   []metric.Observable
	err   error
}

func (m *maker) add(o metric.Observable, err error) {
	m.all = append(m.all, o)
	m.err = errors.Join(m.err, err)
}

func (m *maker) counter(name, unit, description string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.add(i, err)
	return i
}

func (m *maker) upDown(name, unit, description string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.add(i, err)
	return i
}

func (m *maker) gauge(name, unit, description string) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.add(i, err)
	return i
}

func (m *maker) floatGauge(name, unit, description string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.add(i, err)
	return i
}

func newInstruments(meter metric.Meter, kinds []rule.Definition) (*instruments, error) {
	m := &maker{meter: meter}
	i := &instruments{
		requests: m.counter("penstock.requests", "{request}", "Calls, by whether they passed."),
		tokens: m.counter("penstock.tokens", "{token}",
			"Tokens that calls asked for when they entered, by whether these passed."),
		failed: m.counter("penstock.failed_requests", "{request}", "Calls that ended with a failure."),
		active: m.upDown("penstock.active_requests", "{request}", "Calls under way."),
		queued: m.upDown("penstock.queued_requests", "{request}", "Calls that wait."),

		refusals: m.counter("penstock.rule.refusals", "{request}", "Calls that a rule in force refused."),
		demotions: m.counter("penstock.rule.demotions", "{request}",
			"Calls that a rule in force gave the lowest priority in place of refusing them."),
		shadowRefusals: m.counter("penstock.rule.shadow_refusals", "{request}",
			"Calls that a rule in force would have refused while it was a shadow."),
		transitions: m.counter("penstock.rule.transitions", "{transition}", "Changes of the state of a rule."),
		limit:       m.floatGauge("penstock.rule.limit", "{token}/s", "Tokens per second that a rule lets pass now."),
		used: m.floatGauge("penstock.rule.used", "1", "Which part of the limit of a rule is used: of a window, a bucket or a balance; "+
			"of a limit of the whole fleet by all instances."),
		remaining: m.floatGauge("penstock.rule.remaining", "{token}", "Tokens that are left of the limit of a rule: of a window, a bucket or a balance."),
		state:     m.gauge("penstock.rule.state", "1", "1 for the present state of a rule, 0 for the others."),

		inForce:    m.gauge("penstock.rule.in_force", "{rule}", "Rules in force."),
		unmatched:  m.gauge("penstock.rule.unmatched", "{rule}", "Rules in force that no call has matched."),
		rejections: m.counter("penstock.document.rejections", "{document}", "Rule documents that could not be applied."),
		connected:  m.gauge("penstock.source.connected", "1", "Whether a source of rules could be read when last tried."),
		staleness: m.floatGauge("penstock.source.staleness", "s",
			"Time since the state of a source was last known: 0 while it is connected."),
		signal: m.floatGauge("penstock.signal", "1", "What a signal of the system shows that rules read."),

		load: m.floatGauge("penstock.load", "1", "How loaded the resources are that guards were asked about: "+
			"up to 1 the share of the places that are taken, up to 2 calls wait and are refused."),
		loadLevel: m.gauge("penstock.load.level", "1", "The level of the load, from 0 for none to 4 for shedding."),

		fleetConnected: m.gauge("penstock.fleet.connected", "1", "Whether the backend of the fleet answers."),
		fleetInstances: m.gauge("penstock.fleet.instances", "{instance}", "Instances of the fleet, as last known."),
		fleetOutages:   m.counter("penstock.fleet.outages", "{outage}", "Outages of the backend of the fleet that have begun."),
		fleetRequests:  m.counter("penstock.fleet.requests", "{request}", "Requests to the backend of the fleet."),
		fleetLatency:   m.floatGauge("penstock.fleet.latency", "s", "How long answers of the backend of the fleet took of late."),

		kinds: make(map[rule.Kind][]kindInstrument),
	}
	for _, kind := range kinds {
		i.kinds[kind.Kind()] = m.ofKind(kind)
	}
	i.all = m.all
	return i, m.err
}

// ofKind makes the instruments of the gauges of a kind.
func (m *maker) ofKind(kind rule.Definition) (list []kindInstrument) {
	for _, gauge := range kind.Gauges() {
		i := kindInstrument{Gauge: gauge}
		last := len(list) - 1
		switch {
		case last >= 0 && list[last].Name == gauge.Name && list[last].Counter == gauge.Counter:
			i.instrument = list[last].instrument
		case gauge.Counter:
			counter, err := m.meter.Float64ObservableCounter(kindMetric(kind.Kind(), gauge.Name), metric.WithDescription(gauge.Help))
			m.add(counter, err)
			i.instrument = counter
		default:
			i.instrument = m.floatGauge(kindMetric(kind.Kind(), gauge.Name), "", gauge.Help)
		}
		list = append(list, i)
	}
	return list
}

// kindMetric returns "penstock.hot_param.tracked" for "hotParam" and "tracked".
func kindMetric(kind rule.Kind, name string) string {
	folder := strings.TrimSuffix(strings.TrimPrefix(rule.MetricName(kind, ""), "penstock_"), "_")
	return "penstock." + folder + "." + name
}
