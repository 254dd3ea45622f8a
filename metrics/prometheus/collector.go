package penstockprom

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Collector exposes one engine. [NewCollector] makes it. It is safe for concurrent
// use.
type Collector struct {
	engine   *core.Engine
	families families
	layout   histogramLayout
	invalid  error // why the constant labels are

	// mu guards what follows. It is held while the engine is read, too, so that
	// concurrent scrapes add their snapshots in order.
	mu          sync.Mutex
	accumulator *core.Accumulator // keeps labels with the totals
	overflow    uint64            // calls of names beyond the engine's bound
	numbers     int               // that the last scrape had
}

// NewCollector returns a collector for the engine, or for [penstock.Default] if that
// is nil. Register it once, which returns an error if the constant labels are invalid, or
// have it gather by itself: see [Collector.Gather].
func NewCollector(engine *core.Engine, options Options) *Collector {
	if engine == nil {
		engine = penstock.Default()
	}
	options = options.withDefaults()
	c := &Collector{
		engine: engine, families: newFamilies(engine.Kinds(), options.ConstLabels), layout: newHistogramLayout(options),
		accumulator: &core.Accumulator{MaxResources: options.MaxResources},
	}
	c.invalid = prometheus.NewRegistry().Register(c)
	return c
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range c.families.all {
		descs <- f.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	s := c.scrape()
	for i := range s.numbers {
		metrics <- &s.numbers[i]
	}
	for i := range s.distributions {
		metrics <- &s.distributions[i]
	}
}

func (c *Collector) scrape() series {
	c.mu.Lock()
	defer c.mu.Unlock()
	snapshot := c.engine.Snapshot()
	totals := c.accumulator.Add(&snapshot)

	e := exposition{families: &c.families, layout: &c.layout, series: series{
		numbers:       make([]number, 0, c.numbers+c.numbers/8),
		distributions: make([]distribution, 0, 2*len(totals)),
	}}
	e.resources(totals)
	e.rulesOn(totals, snapshot.Resources)
	withoutSeries, overflow := summedUp(totals, snapshot.Resources)
	c.overflow = max(c.overflow, overflow) // a call may be taken back
	e.together(len(snapshot.Resources), withoutSeries, c.overflow)
	if load, ok := c.engine.PresentLoad(); ok {
		e.load(load)
	}
	e.rules(&snapshot)
	e.signals(snapshot.Status.Signals)
	e.fleet(snapshot.Status.Fleet)
	e.sources(&snapshot)
	e.lists(c.engine.Lists().Status())
	e.missingLists(snapshot.Status.MissingLists)
	c.numbers = len(e.numbers)
	return e.series
}

// summedUp returns how many resources have no series of their own, and how many calls there were
// of names beyond the engine's bound, which have a resource together.
func summedUp(totals []*core.ResourceTotals, resources []core.ResourceSnapshot) (withoutSeries int, overflow uint64) {
	for _, t := range totals {
		if t.Name == rule.OtherResources {
			withoutSeries = t.Resources
			if t.Index >= 0 {
				withoutSeries--
				overflow = resources[t.Index].Passed + resources[t.Index].Blocked
			}
		}
	}
	return withoutSeries, overflow
}
