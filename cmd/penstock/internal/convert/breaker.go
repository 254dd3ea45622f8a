package convert

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/breaker"
)

// longProbe is the least probe timeout of converted rules. In Sentinel a probe may take
// any time.
const longProbe = time.Minute

// What all circuit breakers do differently.
const (
	noteHalfOpen = "circuit breakers: in Sentinel a probe may take any time, and calls that began before the breaker opened count as " +
		"probes; here only probes count, and one that has not ended within probeTimeout counts as failed"
	noteBuckets = "circuit breakers: in Sentinel the window starts empty after each statistic interval, unless it has several buckets; " +
		"here it has 10 buckets and slides"
	noteExceeded = "circuit breakers: Sentinel for Java opens when a ratio is above the threshold, unless that is 1; here it is enough to " +
		"reach it"
	noteMilliseconds = "circuit breakers: Sentinel compares response times in whole milliseconds; here a call is slow as soon as it takes " +
		"longer"
)

// circuitBreaker is a circuit breaker of Sentinel, of any version.
type circuitBreaker struct {
	rule    breaker.Rule
	buckets int // of the window; 0 for a number that depends on the version
	pattern string
}

// convert adds the breaker of Penstock that does the same, unless the rule is left out.
func (b circuitBreaker) convert(o *object, to *batch) {
	if o.dropped {
		return
	}
	b.rule.ProbeTimeout = max(b.rule.Window, longProbe)
	o.note(noteHalfOpen)
	if b.buckets != breakerBuckets {
		o.note(noteBuckets)
	}
	if b.rule.Strategy == breaker.SlowRatio {
		o.note(noteMilliseconds)
	}
	to.breaker = append(to.breaker, converted[breaker.Rule]{b.rule, o.source(b.pattern)})
}

// convertGoBreaker converts a circuit breaker of sentinel-golang.
func convertGoBreaker(o *object, to *batch) {
	interval, openFor := o.positive("statIntervalMs", 0), o.positive("retryTimeoutMs", 0)
	buckets, minCalls, probes := o.whole("statSlidingWindowBucketCount", 0), o.whole("minRequestAmount", 0), o.whole("probeNum", 0)
	slowAfter, threshold, strategy := o.whole("maxAllowedRtMs", 0), o.number("threshold", 0), o.whole("strategy", 0)
	b := circuitBreaker{buckets: max(1, buckets), rule: breaker.Rule{
		Name: nameOf(o), Resource: o.resource, Threshold: threshold, Window: milliseconds(interval),
		OpenFor: milliseconds(openFor), MinCalls: max(1, minCalls), Probes: max(1, probes),
	}}
	if interval%b.buckets != 0 {
		b.buckets = 1
	}
	switch strategy {
	case 0:
		b.rule.Strategy, b.rule.SlowAfter = breaker.SlowRatio, slowerThan(o, "maxAllowedRtMs", slowAfter)
	case 1:
		b.rule.Strategy = breaker.ErrorRatio
	case 2:
		b.rule.Strategy, b.rule.Threshold = breaker.ErrorCount, math.Floor(threshold)
	default:
		o.unknown("strategy")
	}
	switch {
	case o.dropped:
	case b.rule.Threshold == 0:
		o.drop(o.at("threshold"), "with threshold %v Sentinel opens even if no call is bad: raise it or remove the rule", threshold)
	case b.rule.Strategy != breaker.ErrorCount && threshold > 1:
		dropRatio(o, "threshold", threshold)
	}
	if probes > 0 {
		o.differ(o.at("probeNum"), "in Sentinel all calls pass while it is half-open, until %d have ended well; here only the first %d pass",
			probes, probes)
	}
	b.convert(o, to)
}

// convertJavaBreaker converts a degrade rule of Sentinel for Java since 1.8. Missing
// fields have the values of a new DegradeRule. Sentinel ignores limitApp.
func convertJavaBreaker(o *object, to *batch) {
	interval, openFor := o.positive("statIntervalMs", 1000), o.positive("timeWindow", 0)
	minCalls, grade := o.positive("minRequestAmount", 5), o.whole("grade", 0)
	count, slowRatio := o.number("count", 0), o.number("slowRatioThreshold", 1)
	b := circuitBreaker{rule: breaker.Rule{
		Resource: o.resource, Window: milliseconds(interval), OpenFor: seconds(openFor), MinCalls: minCalls, Probes: 1,
	}}
	if o.flag("regex") {
		b.rule.Match, b.pattern = javaPattern(o.resource)
		b.rule.Resource = ""
	}
	switch grade {
	case 0:
		b.rule.Strategy, b.rule.SlowAfter = breaker.SlowRatio, slowerThan(o, "count", int(min(math.Round(count), math.MaxUint32)))
		b.rule.Threshold = slowRatioAbove(o, slowRatio)
	case 1:
		b.rule.Strategy, b.rule.Threshold = errorRatioAbove(o, count)
	case 2:
		b.rule.Strategy, b.rule.Threshold = breaker.ErrorCount, math.Floor(count)+1 // more than count
	default:
		o.unknown("grade")
	}
	b.convert(o, to)
}

// slowRatioAbove returns the threshold of a breaker that opens in Java above a ratio of
// slow calls.
func slowRatioAbove(o *object, ratio float64) float64 {
	switch {
	case ratio > 1:
		dropRatio(o, "slowRatioThreshold", ratio)
	case ratio == 0:
		o.differ(o.at("slowRatioThreshold"), "Sentinel opens at the first slow call (slowRatioThreshold 0); here at a share of %v",
			minRatio)
		return minRatio
	case ratio < 1:
		o.note(noteExceeded)
	}
	return ratio
}

// errorRatioAbove returns the strategy and the threshold of a breaker that opens in Java
// above a ratio of failed calls.
func errorRatioAbove(o *object, ratio float64) (breaker.Strategy, float64) {
	switch {
	case ratio > 1:
		dropRatio(o, "count", ratio)
	case ratio == 1:
		o.drop(o.at("count"), "Sentinel never opens it, for no ratio of failed calls is above 1: lower it or remove the rule")
	case ratio == 0:
		return breaker.ErrorCount, 1 // the first failed call is enough
	}
	o.note(noteExceeded)
	return breaker.ErrorRatio, ratio
}

// slowerThan returns the time after which calls are slow.
func slowerThan(o *object, field string, ms int) time.Duration {
	if ms == 0 {
		o.differ(o.at(field), "in Sentinel a call of 1 ms is slow (%s 0); here only one that takes longer than 1ms", field)
		return time.Millisecond
	}
	return milliseconds(ms)
}

func dropRatio(o *object, field string, ratio float64) {
	o.drop(o.at(field), "Sentinel ignores a circuit breaker whose ratio is above 1, and %s is %v: lower it or remove the rule", field, ratio)
}
