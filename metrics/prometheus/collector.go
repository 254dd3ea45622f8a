package penstockprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Collector exposes one engine. It is made by [NewCollector] and safe for
// concurrent use.
type Collector struct {
	engine   *core.Engine
	families families

	// mu is held while the engine is read, too: what is booked must not be
	// older than what was booked before.
	mu     sync.Mutex
	ledger ledger
}

// NewCollector returns a collector, to be registered once. The engine nil stands
// for [penstock.Default]. Registering it tells what may be wrong with the
// options' labels.
func NewCollector(engine *core.Engine, options Options) *Collector {
	if engine == nil {
		engine = penstock.Default()
	}
	options = options.withDefaults()
	return &Collector{
		engine:   engine,
		families: newFamilies(engine.Kinds(), options.ConstLabels),
		ledger:   newLedger(options.MaxResources, options.Buckets),
	}
}

// Describe is the collector's side of [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range c.families.all {
		descs <- desc
	}
}

// Collect is the collector's side of [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, metric := range c.scrape() {
		metrics <- metric
	}
}

func (c *Collector) scrape() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot := c.engine.Snapshot()
	c.ledger.book(snapshot.Resources)

	e := exposition{families: &c.families}
	for name, account := range c.ledger.accounts {
		e.resource(name, account, c.ledger.buckets)
	}
	e.rulesOn(snapshot.Resources, c.ledger.shown)
	e.rules(&snapshot)
	e.sources(&snapshot)
	return e.metrics
}
