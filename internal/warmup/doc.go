// Package warmup computes how much a cold resource may be called, and how it warms up.
//
// [Curve] and [Bucket] are the warm-up of Sentinel: a bucket of stored tokens, which fills
// while the resource is idle and is drained by what passes. A full bucket is a cold
// resource, which may be called at limit/coldFactor. As the bucket drains the limit
// rises along a hyperbola. It reaches the limit when the bucket is down to its warning
// line. A Curve is the arithmetic of one rule, a Bucket is the state of one resource. The
// formulas are Sentinel's, without their truncation to integers.
//
// [CostCurve] is the warm-up of Guava's SmoothWarmingUp, for token buckets: there is no
// step and no limit, but each stored token has a price in time.
package warmup
