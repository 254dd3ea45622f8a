// Package warmup knows how cold a resource is and what ceiling that allows.
//
// It is the mother bucket: a bucket of tokens that fills while little happens
// and is drained by what passes. A full one is a stone-cold resource, which may
// be called at limit/coldFactor; the ceiling rises as the bucket drains, along
// a hyperbola, and reaches the limit when it is down to its warning line.
//
// A [Curve] is the arithmetic of one rule, a [Bucket] the state that it is
// applied to. The formulas are those of Sentinel's warm-up, after Guava's
// SmoothWarmingUp, without their truncation to integers.
//
// A [CostCurve] is the other form of it, Guava's own, for token buckets: there is
// no step and no ceiling, each token has its price in time.
package warmup
