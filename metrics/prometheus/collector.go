package penstockprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Collector exposes one engine. [NewCollector] makes it. It is safe for concurrent
// use.
type Collector struct {
	engine   *core.Engine
	families families

	// mu guards the accumulator. It is held while the engine is read, too, so that
	// concurrent scrapes add their snapshots in order.
	mu          sync.Mutex
	accumulator accumulator
}

// NewCollector returns a collector for the engine, or for [penstock.Default] if that
// is nil. Register it once. Registering returns an error if the constant labels are
// invalid.
func NewCollector(engine *core.Engine, options Options) *Collector {
	if engine == nil {
		engine = penstock.Default()
	}
	options = options.withDefaults()
	c := &Collector{engine: engine, families: newFamilies(engine.Kinds(), options.ConstLabels)}
	c.accumulator = newAccumulator(&c.families, options)
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range c.families.all {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, metric := range c.scrape() {
		metrics <- metric
	}
}

func (c *Collector) scrape() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot := c.engine.Snapshot()
	c.accumulator.update(snapshot.Resources)

	e := exposition{families: &c.families}
	e.resources(&c.accumulator, len(snapshot.Resources))
	e.rulesOn(snapshot.Resources, c.accumulator.inOrder)
	e.rules(&snapshot)
	e.signals(snapshot.Status.Signals)
	e.fleet(snapshot.Status.Fleet)
	e.sources(&snapshot)
	e.lists(c.engine.Lists().Status())
	return e.metrics
}
