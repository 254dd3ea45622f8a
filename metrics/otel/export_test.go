package penstockotel

// KindMetric is the name of the metric of a gauge.
var KindMetric = kindMetric
