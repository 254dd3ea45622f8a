package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// What all rules for hot parameters do differently.
const (
	noteRefill = "hot parameters and gateway rules: in Sentinel tokens come back all at once, when an interval is over; here they flow in " +
		"evenly, so that calls pass earlier. In the long run neither lets more than the threshold pass in an interval"
	noteSpacing = "hot parameters and gateway rules that throttle: Sentinel spaces calls by whole milliseconds; here the distance is exact, " +
		"and a call whose wait is exactly the longest passes"
	noteForgets = "hot parameters: of more values than it keeps, Sentinel forgets the one that it has not seen for the longest time, and what " +
		"it has used; here the values beyond maxValues share limits that are stricter"
	noteNumbers = "hot parameters: in Sentinel for Java an Integer 7 and a Long 7 are two values; here they are one"
)

// hotRule is a rule for hot parameters of Sentinel, of any version.
type hotRule struct {
	name           string // "" if it has none
	match, pattern string // see [flowRule]
	param          string
	field          string  // of the threshold
	threshold      float64 // a whole number
	concurrency    bool    // it limits the calls under way of each value
	interval       time.Duration
	throttle       bool
	maxWait        time.Duration
	extra          int // what a value may save beside the threshold
	maxValues      int // 0 for the default
	items          []hotItem

	// unlisted says that values without an item have no limit; the threshold is that of
	// the items.
	unlisted bool
}

// hotItem is a value with a threshold of its own, or a pattern of values.
type hotItem struct {
	key       rule.Attribute
	threshold float64
}

// convert adds the rule of Penstock that does the same, unless the rule is left out.
func (r hotRule) convert(o *object, to *batch) {
	if r.concurrency && r.threshold == 0 && len(r.items) > 0 && !r.unlisted {
		o.drop(o.at(r.field), "%s is 0, but some values have a limit of their own: no rule here blocks all calls but those of some values; "+
			"give the others a limit, too", r.field)
	}
	if o.dropped {
		return
	}
	r.report(o)
	to.hotParam = append(to.hotParam, converted[hotparam.Rule]{r.rule(o), o.source(r.pattern)})
}

func (r hotRule) rule(o *object) hotparam.Rule {
	made := hotparam.Rule{Name: r.name, Resource: o.resource, Param: rule.StringsOf(r.param), Values: r.values()}
	if r.match != "" {
		made.Resource, made.Match = "", r.match
	}
	if r.maxValues > usualValues {
		made.MaxValues = min(r.maxValues, maxValues)
	}
	limit := r.threshold
	if r.unlisted {
		limit = r.unlimited()
	}
	switch {
	case r.concurrency && limit > 0:
		made.Concurrency = int(min(limit, maxConcurrency+1)) // one more is a mistake
		return made
	case r.concurrency: // no call passes
		return made
	case r.throttle:
		made.Algorithm, made.MaxWait = hotparam.Throttle, r.maxWait
	case r.saves():
		made.Burst = r.threshold + float64(r.extra)
	}
	made.Limit, made.Window = limit, r.interval
	return made
}

// saves says whether a value may save more than the threshold. A rule for some values
// cannot say so: the others would have that burst, too.
func (r hotRule) saves() bool { return r.extra > 0 && r.threshold > 0 && !r.unlisted }

// unlimited returns the limit of values that the rule is not for.
func (r hotRule) unlimited() float64 {
	switch {
	case r.concurrency:
		return maxConcurrency
	case r.throttle: // more could not be kept beside small limits
		const perSecond = 10_000_000
		return min(hotparam.MaxLimit, math.Ceil(r.interval.Seconds()*perSecond))
	}
	return hotparam.MaxLimit
}

func (r hotRule) values() rule.NumberMap {
	entries := make([]rule.NumberEntry, len(r.items))
	for i, item := range r.items {
		entries[i] = rule.NumberEntry{Key: item.key, Value: item.threshold}
	}
	return rule.NumberMapOf(entries...)
}

// report reports what will behave differently.
func (r hotRule) report(o *object) {
	if r.maxValues > maxValues {
		o.differ(o.at("paramsMaxCapacity"), "Sentinel keeps %d values; here the most is %d", r.maxValues, maxValues)
	}
	o.note(noteForgets)
	switch {
	case r.concurrency:
	case r.throttle:
		o.note(noteSpacing)
		if r.threshold > r.interval.Seconds()*1000 {
			o.differ(o.at(r.field), "Sentinel throttles nothing here, for calls would be less than a millisecond apart; here they are spaced")
		}
	default:
		o.note(noteRefill)
		if r.saves() && len(r.items) > 0 {
			o.differ(o.at("burstCount"), "in Sentinel each value may save %d more than its own threshold; here it is %v tokens for all values",
				r.extra, r.threshold+float64(r.extra))
		}
		if r.extra > 0 && r.unlisted {
			o.differ(o.at("burst"), "in Sentinel a value may save %d more than the threshold; here no more than the threshold", r.extra)
		}
	}
}

// argument reads which argument of a call the rule looks at, and returns the attribute
// that stands for it.
func argument(o *object, field string) string {
	index := o.integer(field)
	name := fmt.Sprintf("arg%d", index)
	which := fmt.Sprintf("the argument with the index %d", index)
	if index < 0 {
		which = fmt.Sprintf("the argument with the index %d, counted from the end,", index)
	}
	o.note(attributeNote(which, name))
	return name
}

// attributeNote tells how a program gives the attribute that replaces something.
func attributeNote(of, name string) string {
	return fmt.Sprintf("hot parameters: %s is the attribute %s here, which the program gives to a call: core.String(%[2]q, …), "+
		"core.Int for a whole number or core.Bool; a call without it passes", of, name)
}

// addItem adds a value with a threshold of its own. Of a value that is given twice the
// last one counts.
func (r *hotRule) addItem(key rule.Attribute, threshold float64) {
	for i := range r.items {
		if r.items[i].key.Equal(key) {
			r.items[i].threshold = threshold
			return
		}
	}
	r.items = append(r.items, hotItem{key, threshold})
}

func textKey(text string) rule.Attribute { return rule.String(literal(text)) }

// literal returns a pattern that matches only the text.
func literal(text string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
	if strings.HasPrefix(text, "~") {
		escaped = `\` + escaped
	}
	return escaped
}

// items returns the objects in a list.
func (o *object) items(field string) (list []*object) {
	e := o.find(field)
	if e == nil {
		return nil
	}
	nodes, ok := e.node.value.([]node)
	if !ok {
		o.mistype(e, "a list")
	}
	for _, n := range nodes {
		list = append(list, o.within(n))
	}
	return list
}

// within returns an object within the rule.
func (o *object) within(n node) *object {
	item := newObject(n)
	item.resource = o.resource
	for i := range item.findings {
		item.findings[i].Resource = o.resource
	}
	return item
}

// leaveOut reports that something within the rule is not converted.
func (o *object) leaveOut(offset int, format string, args ...any) {
	o.add(LeftOut, offset, format, args...)
}

// integer is whole for a field that may be negative.
func (o *object) integer(name string) int {
	e := o.find(name)
	if e == nil {
		return 0
	}
	number, _ := e.node.value.(json.Number)
	v, err := strconv.ParseInt(number.String(), 10, 32)
	if err != nil {
		o.mistype(e, "a whole number")
	}
	return int(v)
}
