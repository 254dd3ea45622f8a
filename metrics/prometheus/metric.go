package penstockprom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// number is a counter or a gauge. It does what those of [prometheus.NewConstMetric] do, but
// takes labels that were made at an earlier scrape.
type number struct {
	of        *family
	labels    []*dto.LabelPair
	value     float64
	isCounter bool
}

// Desc implements [prometheus.Metric].
func (n *number) Desc() *prometheus.Desc { return n.of.desc }

// Write implements [prometheus.Metric].
func (n *number) Write(out *dto.Metric) error {
	out.Label = n.labels
	if n.isCounter {
		out.Counter = &dto.Counter{Value: &n.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &n.value}
	}
	return nil
}

// distribution is a histogram, or a summary without quantiles.
type distribution struct {
	of        *family
	labels    []*dto.LabelPair
	histogram *dto.Histogram // nil of a summary
	count     uint64         // of a summary, as is sum
	sum       float64        // seconds
}

// Desc implements [prometheus.Metric].
func (d *distribution) Desc() *prometheus.Desc { return d.of.desc }

// Write implements [prometheus.Metric].
func (d *distribution) Write(out *dto.Metric) error {
	out.Label, out.Histogram = d.labels, d.histogram
	if d.histogram == nil {
		out.Summary = &dto.Summary{SampleCount: &d.count, SampleSum: &d.sum}
	}
	return nil
}
