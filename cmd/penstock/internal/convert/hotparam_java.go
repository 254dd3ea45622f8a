package convert

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

// noteCollections is what rules of Java do differently.
const noteCollections = "hot parameters: of an argument that is a collection or an array, Sentinel counts each element; here a call " +
	"has one value of an attribute"

// convertJavaHotParam converts a ParamFlowRule of Sentinel for Java. Missing fields have the
// values of a new ParamFlowRule. Sentinel ignores limitApp, and the fraction of a count.
func convertJavaHotParam(o *object, to *batch) {
	r := hotRule{
		field: "count", threshold: math.Floor(o.number("count", 0)), interval: seconds(o.positive("durationInSec", 1)),
		maxWait: milliseconds(o.whole("maxQueueingTimeMs", 0)), extra: o.whole("burstCount", 0),
	}
	r.concurrency = readGrade(o, "grade", 1)
	r.throttle = o.whole("controlBehavior", 0) == 2 // all others refuse
	dropCluster(o)
	if o.flag("regex") {
		r.match, r.pattern = javaPattern(o.resource)
	}
	if o.has("paramIdx") {
		r.param = argument(o, "paramIdx")
	} else {
		o.drop(o.offset, "Sentinel ignores a rule without paramIdx: write which argument it looks at, or remove the rule")
	}
	o.note(noteCollections)
	for _, item := range o.items("paramFlowItemList") {
		r.addJavaItem(o, item)
	}
	r.convert(o, to)
}

// addJavaItem adds a value with a threshold of its own.
func (r *hotRule) addJavaItem(o, item *object) {
	class, value, known := item.text("classType"), item.find("object"), item.has("count")
	threshold := math.Floor(item.number("count", 0))
	format{"Sentinel for Java", "items of paramFlowItemList", "", []string{"object", "count", "classType"}, nil, false}.reportUnknownFields(item)
	o.findings = append(o.findings, item.findings...)
	switch {
	case item.dropped:
		return
	case value == nil || !known:
		o.leaveOut(item.offset, "Sentinel ignores a value without an object or a count: write both or remove it")
		return
	}
	text, scalar := scalarText(value.node)
	if !scalar {
		o.leaveOut(value.node.offset, "object is %v: must be text, a number or a boolean", value.node)
		return
	}
	key, fault := javaValue(text, class)
	if fault != "" {
		o.leaveOut(value.node.offset, "%s", fault)
		return
	}
	if _, isNumber := key.Number(); isNumber {
		o.note(noteNumbers)
	}
	r.addItem(key, threshold)
}

// javaValue returns the value that a text of a class stands for, or why there is none.
func javaValue(text, class string) (key rule.Attribute, fault string) {
	const integer, long = 32, 64
	whole := func(bits int) (rule.Attribute, string) {
		number, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return rule.Attribute{}, "object is " + wording.Quote(text) + ": Sentinel ignores a value that is no " + class + "; remove it"
		}
		return rule.Int(number), ""
	}
	switch strings.TrimPrefix(class, "java.lang.") {
	case "int", "Integer":
		return whole(integer)
	case "long", "Long":
		return whole(long)
	case "short", "Short":
		return whole(16)
	case "byte", "Byte":
		return whole(8)
	case "boolean", "Boolean":
		return rule.Bool(strings.EqualFold(text, "true")), ""
	case "double", "Double", "float", "Float":
		return rule.Attribute{}, strings.Replace(noFractions, "%s", wording.Quote(text), 1)
	case "char":
		if first := []rune(text); len(first) > 0 {
			return textKey(string(first[:1])), ""
		}
		return rule.Attribute{}, "object is \"\": Sentinel ignores a value that is no char; remove it"
	}
	return textKey(text), "" // Sentinel takes everything else for a text
}

// scalarText returns the text of a value that is no list and no object.
func scalarText(n node) (string, bool) {
	switch v := n.value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
