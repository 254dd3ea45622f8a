package convert

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

// What all rules of resilience4j do differently.
const (
	noteR4jResource = "resilience4j: an instance is named where it is used; here a rule is for a resource: call the resource like the instance, " +
		"or change resource"
	noteR4jCycles = "resilience4j: all permissions come back at the start of each period, however many calls wait; here tokens flow in evenly"
	noteR4jProbes = "resilience4j: half-open, it waits for all permitted calls and then looks at their rate; here it closes or opens as soon as " +
		"those that have not ended cannot change it, and one that has not ended within probeTimeout counts as failed"
	noteR4jSlow   = "resilience4j: a slow call counts when it ends; here as soon as it has taken longer than slowAfter"
	noteR4jErrors = "resilience4j: every exception is a failure unless recordExceptions or ignoreExceptions say otherwise; here what the adapter " +
		"or the program calls one"
)

// convertResilience4j converts the application.yml of a program with resilience4j.
func convertResilience4j(documents []node) (converted batch, findings []Finding) {
	root := &object{}
	for _, document := range slices.Backward(documents) { // what a later one says counts
		o := plainObject(document)
		findings = append(findings, o.findings...)
		if profile := profileOf(o); profile != nil && len(documents) > 1 {
			findings = append(findings, Finding{Kind: LeftOut, offset: profile.key.offset, Message: fmt.Sprintf(
				"what is only for the profile %v is not written: convert it from a file of its own", profile.node)})
			continue
		}
		root.putAll(o)
	}
	for _, e := range root.below("resilience4j").entries {
		f := r4jFile{to: &converted, module: e.name()}
		f.convertModule(e)
		findings = append(findings, f.findings...)
	}
	return converted, findings
}

// profileOf returns the field that says for which profiles of Spring a document is; nil if it is for all.
func profileOf(o *object) *entry {
	all := &object{}
	all.putAll(o)
	spring := all.below("spring")
	for _, e := range spring.below("config").below("activate").entries {
		if strings.EqualFold(uniform(e.name()), "onProfile") {
			return &e
		}
	}
	if e := spring.find("profiles"); e != nil && !isObject(e.node) {
		return e // as in versions before 2.4
	}
	return nil
}

func isObject(n node) bool {
	_, is := n.value.([]entry)
	return is
}

// r4jFile is a part of a configuration that is being converted.
type r4jFile struct {
	to       *batch
	module   string
	findings []Finding
}

// convertModule converts the instances of a module, such as circuitbreaker.
func (f *r4jFile) convertModule(e entry) {
	convert := map[string]func(*object, *batch){
		"circuitbreaker": convertR4jBreaker, "ratelimiter": convertR4jRateLimiter, "bulkhead": convertR4jBulkhead,
	}[strings.ToLower(f.module)]
	module := plainObject(e.node)
	configs, instances := module.below("configs"), module.below("instances")
	if on := module.find("enabled"); on != nil {
		if v, ok := truth(on.node); ok && !v {
			f.findings = append(f.findings, Finding{Kind: Understood, offset: e.key.offset, Message: f.module + " is switched off, so nothing of it is written"})
			return
		}
	}
	for _, of := range append(slices.Clone(instances.entries), module.below("backends").entries...) {
		o := plainObject(of.node)
		o.offset, o.resource = of.key.offset, of.name()
		switch {
		case convert == nil:
			o.drop(o.offset, "%s: %s", f.module, r4jAdvice(f.module))
		case o.inherit(configs):
			convert(o, f.to)
		}
		f.findings = append(f.findings, o.findings...)
	}
}

// r4jAdvice says what to do instead of converting the instances of a module.
func r4jAdvice(module string) string {
	switch strings.ToLower(module) {
	case "retry":
		return "no rule here repeats calls; the retry budgets of adapters limit how many are repeated"
	case "timelimiter":
		return "no rule here ends calls: give the context a deadline"
	case "threadpoolbulkhead":
		return "there are no thread pools here: limit the calls under way with an isolation rule, and let some wait with maxWait"
	}
	return "no rule here does that"
}

// inherit adds the fields that an instance has from its configuration, which is the default
// one if it names none. It returns false if there is no such configuration.
func (o *object) inherit(configs *object) bool {
	base := o.text("baseConfig")
	if base != "" && configs.find(base) == nil {
		o.drop(o.at("baseConfig"), "the configuration %s is not in this file", wording.Quote(base))
	}
	seen := map[string]bool{}
	for name := cmp.Or(base, "default"); name != "" && !seen[name]; {
		seen[name] = true
		from := configs.below(name)
		name = from.text("baseConfig")
		for _, e := range from.entries {
			if o.find(e.name()) == nil && !strings.EqualFold(e.name(), "baseConfig") {
				o.entries = append(o.entries, e)
			}
		}
	}
	return !o.dropped
}

// below returns the object under a field; one without fields if there is none.
func (o *object) below(name string) *object {
	e := o.find(name)
	if e == nil {
		return &object{offset: o.offset}
	}
	return plainObject(e.node)
}

// putAll adds the fields of an object with names as Spring reads them: dots lead to objects within, and dashes
// and underscores do not count. Names of instances and configurations stay. What is there already stays.
func (o *object) putAll(of *object) {
	for _, e := range of.entries {
		o.put(strings.Split(e.name(), "."), e, 0)
	}
}

// uniform returns a name, or a value of an enumeration, without what does not count for Spring but its case.
func uniform(name string) string { return strings.NewReplacer("-", "", "_", "").Replace(name) }

// put sets the value at a path. Below resilience4j there are modules, then instances and
// configs, and then their names.
func (o *object) put(path []string, e entry, depth int) {
	const nameDepth = 3
	name := path[0]
	if depth != nameDepth {
		name = uniform(name)
	}
	inner, nested := e.node.value.([]entry)
	if len(path) == 1 && !nested {
		if o.find(name) != nil {
			return
		}
		o.entries = append(o.entries, entry{node{e.key.offset, name}, e.node})
		return
	}
	at := o.find(name)
	if at == nil {
		o.entries = append(o.entries, entry{node{e.key.offset, name}, node{e.node.offset, []entry{}}})
		at = &o.entries[len(o.entries)-1]
	}
	entries, _ := at.node.value.([]entry)
	child := &object{entries: entries}
	if len(path) > 1 {
		child.put(path[1:], e, depth+1)
	} else {
		for _, within := range inner {
			parts := []string{within.name()}
			if depth+1 != nameDepth {
				parts = strings.Split(within.name(), ".")
			}
			child.put(parts, within, depth+1)
		}
	}
	at.node.value = child.entries
}

// iso matches the durations of ISO 8601 that Spring reads.
var iso = regexp.MustCompile(`^PT(\d+H)?(\d+M)?(\d+(\.\d+)?S)?$`)

// duration reads a duration as Spring does: 500ms, 10s, PT10S, or a number of milliseconds.
func (o *object) duration(name string, byDefault time.Duration) time.Duration {
	e := o.find(name)
	if e == nil {
		return byDefault
	}
	text, _ := scalarText(e.node)
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 41); err == nil {
		return time.Duration(n) * time.Millisecond
	}
	if upper := strings.ToUpper(text); iso.MatchString(upper) && len(upper) > len("PT") {
		text = strings.ToLower(upper[len("PT"):])
	}
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		o.drop(e.node.offset, "%s is %v: must be a duration, such as 500ms or 10s", name, e.node)
		return byDefault
	}
	return d
}

// reportR4j leaves out an instance with fields that are not known, of which the limit is not understood. Fields that
// only configure metrics and events have no effect on calls.
func (o *object) reportR4j(known ...string) {
	known = append(known, "baseConfig", "registerHealthIndicator", "eventConsumerBufferSize", "subscribeForEvents", "writableStackTraceEnabled",
		"allowHealthIndicatorToFail", "healthIndicatorFailureRate")
	o.dropOthers(known...)
}

// above0 leaves out an instance of which a value is 0, with which resilience4j does not start.
func above0[T int | float64 | time.Duration](o *object, name string, v T) T {
	if v == 0 && !o.dropped {
		o.drop(o.at(name), "%s is %v, which resilience4j refuses: it must be above 0", name, o.find(name).node)
	}
	return v
}

func convertR4jRateLimiter(o *object, to *batch) {
	made := flow.Rule{
		Resource: o.resource, Limit: float64(above0(o, "limitForPeriod", o.whole("limitForPeriod", 50))),
		Window: above0(o, "limitRefreshPeriod", o.duration("limitRefreshPeriod", 500*time.Nanosecond)),
	}
	o.reportR4j("limitForPeriod", "limitRefreshPeriod", "timeoutDuration")
	if !o.has("limitForPeriod") || !o.has("limitRefreshPeriod") {
		o.drop(o.offset, "limitForPeriod or limitRefreshPeriod is missing, of which the defaults (50 in 500 ns) limit nothing: write both")
	}
	o.note(noteR4jResource)
	if wait := o.duration("timeoutDuration", 5*time.Second); wait > 0 {
		made.Algorithm, made.MaxWait = flow.TokenBucket, wait
		o.note(noteR4jCycles)
	} else {
		made.Algorithm = flow.FixedWindow
	}
	if !o.dropped {
		to.flow = append(to.flow, converted[flow.Rule]{made, o.source("")})
	}
}

func convertR4jBulkhead(o *object, to *batch) {
	made := isolation.Rule{Resource: o.resource, Limit: o.whole("maxConcurrentCalls", 25), MaxWait: o.duration("maxWaitDuration", 0)}
	o.reportR4j("maxConcurrentCalls", "maxWaitDuration", "fairCallHandlingStrategyEnabled", "fairCallHandlingEnabled")
	o.note(noteR4jResource)
	if !o.dropped {
		to.isolation = append(to.isolation, converted[isolation.Rule]{made, o.source("")})
	}
}

// ratio is the decimal of a percentage, as people write it: of 33.3 it is .333, which a division misses.
func ratio(percent float64) float64 { return math.Round(percent*1e10) / 1e12 }

func convertR4jBreaker(o *object, to *batch) {
	made := breaker.Rule{
		Resource: o.resource, Strategy: breaker.ErrorRatio,
		Threshold:    ratio(above0(o, "failureRateThreshold", o.number("failureRateThreshold", 50))),
		OpenFor:      above0(o, "waitDurationInOpenState", o.duration("waitDurationInOpenState", time.Minute)),
		Probes:       above0(o, "permittedNumberOfCallsInHalfOpenState", o.whole("permittedNumberOfCallsInHalfOpenState", 10)),
		ProbeTimeout: o.duration("maxWaitDurationInHalfOpenState", 0),
	}
	made.ProbeThreshold = made.Threshold
	slow := made
	slow.Strategy, slow.Threshold = breaker.SlowRatio, ratio(above0(o, "slowCallRateThreshold", o.number("slowCallRateThreshold", 100)))
	slow.ProbeThreshold = slow.Threshold
	slow.SlowAfter = above0(o, "slowCallDurationThreshold", o.duration("slowCallDurationThreshold", time.Minute))
	size := above0(o, "slidingWindowSize", o.whole("slidingWindowSize", 100))
	least := above0(o, "minimumNumberOfCalls", o.whole("minimumNumberOfCalls", 100))
	switch kind := o.text("slidingWindowType"); strings.ToUpper(uniform(kind)) {
	case "", "COUNTBASED":
		made.WindowCalls, least = size, min(least, size)
	case "TIMEBASED":
		made.Window = seconds(size)
	default:
		o.drop(o.at("slidingWindowType"), "slidingWindowType is %s: must be COUNT_BASED or TIME_BASED", wording.Quote(kind))
	}
	made.MinCalls = least
	if made.ProbeTimeout == 0 {
		made.ProbeTimeout = max(made.Window, longProbe)
	}
	slow.Window, slow.WindowCalls, slow.MinCalls, slow.ProbeTimeout = made.Window, made.WindowCalls, made.MinCalls, made.ProbeTimeout
	o.reportR4j("failureRateThreshold", "waitDurationInOpenState", "permittedNumberOfCallsInHalfOpenState", "maxWaitDurationInHalfOpenState",
		"slowCallRateThreshold", "slowCallDurationThreshold", "slidingWindowSize", "minimumNumberOfCalls", "slidingWindowType", "ringBufferSizeInClosedState",
		"ringBufferSizeInHalfOpenState", "automaticTransitionFromOpenToHalfOpenEnabled", "recordExceptions", "ignoreExceptions",
		"enableExponentialBackoff", "exponentialBackoffMultiplier", "exponentialMaxWaitDurationInOpenState", "enableRandomizedWait",
		"randomizedWaitFactor", "recordFailurePredicate", "recordResultPredicate", "ignoreExceptionPredicate")
	for _, former := range []string{"ringBufferSizeInClosedState", "ringBufferSizeInHalfOpenState"} {
		if o.has(former) {
			o.drop(o.at(former), "%s is of an earlier version: write slidingWindowSize or permittedNumberOfCallsInHalfOpenState", former)
		}
	}
	for _, name := range []string{
		"enableExponentialBackoff", "enableRandomizedWait", "recordFailurePredicate", "recordResultPredicate", "ignoreExceptionPredicate",
	} {
		if o.has(name) {
			o.add(LeftOut, o.at(name), "%s: no rule here does that", name)
		}
	}
	o.notes = append(o.notes, noteR4jResource, noteR4jProbes, noteR4jErrors)
	if o.dropped {
		return
	}
	to.breaker = append(to.breaker, converted[breaker.Rule]{made, o.source("")})
	if o.has("slowCallRateThreshold", "slowCallDurationThreshold") {
		o.note(noteR4jSlow)
		slow.Name = fmt.Sprintf("%s-slow", o.resource)
		to.breaker = append(to.breaker, converted[breaker.Rule]{slow, o.source("")})
	}
}
