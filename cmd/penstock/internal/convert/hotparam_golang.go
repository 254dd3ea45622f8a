package convert

import (
	"slices"
	"strconv"

	"github.com/penstock-go/penstock/rule"
)

// convertGoHotParam converts a hotspot rule of sentinel-golang 1.
func convertGoHotParam(o *object, to *batch) {
	r := hotRule{
		name: nameOf(o), field: "threshold", threshold: float64(o.whole("threshold", 0)),
		maxWait: milliseconds(o.whole("maxQueueingTimeMs", 0)), extra: o.whole("burstCount", 0),
		maxValues: o.whole("paramsMaxCapacity", 0),
	}
	switch o.whole("metricType", 0) {
	case 0:
		r.concurrency = true
	case 1:
		r.interval = seconds(o.positive("durationInSec", 0))
	default:
		o.unknown("metricType")
	}
	switch o.whole("controlBehavior", 0) {
	case 0:
	case 1:
		r.throttle = true
	default:
		o.unknown("controlBehavior")
	}
	r.param = goParam(o)
	for _, item := range o.items("specificItems") {
		r.addGoItem(o, item)
	}
	r.convert(o, to)
	if r.concurrency && r.blocks() && !o.dropped {
		o.differ(o.at("threshold"), "Sentinel lets the first call of a value pass even if its limit of calls under way is 0; here none passes")
	}
}

// blocks says whether all calls of some value are refused.
func (r hotRule) blocks() bool {
	return r.threshold == 0 || slices.ContainsFunc(r.items, func(item hotItem) bool { return item.threshold == 0 })
}

// goParam reads which attribute the rule looks at.
func goParam(o *object) string {
	key := o.text("paramKey")
	if key == "" {
		return argument(o, "paramIndex")
	}
	if o.integer("paramIndex") > 0 {
		o.drop(o.at("paramKey"), "Sentinel ignores a rule with paramKey and a paramIndex above 0: remove one of them")
	}
	o.note(attributeNote("the attachment "+strconv.Quote(key), key) + ". In Sentinel the argument with the index 0 stands in for it")
	return key
}

// addGoItem adds a value with a threshold of its own.
func (r *hotRule) addGoItem(o, item *object) {
	kind, value, threshold := item.whole("valKind", 0), item.text("valStr"), float64(item.whole("threshold", 0))
	format{"sentinel-golang", "specificItems", "", []string{"valKind", "valStr", "threshold"}, nil, false}.reportUnknownFields(item)
	o.findings = append(o.findings, item.findings...)
	if item.dropped {
		return
	}
	const ignored = "valStr is %v: Sentinel ignores a value that is no %s; remove it"
	at := item.at("valStr")
	switch kind {
	case 0:
		if number, err := strconv.ParseInt(value, 10, 64); err != nil {
			o.leaveOut(at, ignored, strconv.Quote(value), "whole number")
		} else {
			r.addItem(rule.Int(number), threshold)
		}
	case 1:
		r.addItem(textKey(value), threshold)
	case 2:
		if truth, err := strconv.ParseBool(value); err != nil {
			o.leaveOut(at, ignored, strconv.Quote(value), "boolean")
		} else {
			r.addItem(rule.Bool(truth), threshold)
		}
	case 3:
		o.leaveOut(at, noFractions, strconv.Quote(value))
	default:
		o.leaveOut(item.at("valKind"), "valKind is %d, which Sentinel does not know", kind)
	}
}

// noFractions is said of values that no attribute can have.
const noFractions = "the value %s is a floating-point number: attributes are texts, whole numbers and booleans; " +
	"give the number as a text, and write that into values"
