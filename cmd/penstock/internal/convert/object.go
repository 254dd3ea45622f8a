package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// object is a rule of Sentinel that is being converted. Fields are named as Sentinel
// documents them; their case does not matter.
type object struct {
	offset   int
	entries  []entry
	resource string
	findings []Finding
	notes    []string // see [source]
	dropped  bool     // the rule cannot be converted
}

func newObject(n node) *object {
	entries, ok := n.value.([]entry)
	o := &object{offset: n.offset, entries: entries}
	if wrapped := o.find("rule"); wrapped != nil && o.find("resource") == nil { // as the dashboard keeps some kinds
		if inner, isObject := wrapped.node.value.([]entry); isObject {
			o.entries, entries = inner, inner
		}
	}
	if !ok {
		o.dropOther(n)
		return o
	}
	o.resource = o.text("resource")
	first := make(map[string]bool, len(entries))
	for _, e := range entries {
		name := strings.ToLower(e.name())
		if first[name] {
			o.drop(e.key.offset, "the field %v is given twice: remove one", e.key)
		}
		first[name] = true
	}
	return o
}

// dropOther says what stands where a rule should be.
func (o *object) dropOther(n node) {
	switch v := n.value.(type) {
	case brokenText:
		o.drop(n.offset, "the text cannot be read as JSON: %v", v.err)
	case otherText:
		if v.hasLimits {
			o.drop(n.offset, "%s is no JSON, as rules of Sentinel are: convert it from a file of its own", v.name)
			return
		}
		o.add(Understood, n.offset, "%s is no JSON, as rules of Sentinel are, and is not read", v.name)
		o.dropped = true
	default:
		o.drop(n.offset, "%v is no rule: must be an object", n)
	}
}

func (e entry) name() string { return e.key.value.(string) } //nolint:forcetypeassert // JSON has no other keys

// find returns a field; nil when it is missing or null.
func (o *object) find(name string) *entry {
	for i := range o.entries {
		if e := &o.entries[i]; strings.EqualFold(e.name(), name) && e.node.value != nil {
			return e
		}
	}
	return nil
}

// isNull says whether a field is null.
func (o *object) isNull(name string) bool {
	return slices.ContainsFunc(o.entries, func(e entry) bool { return strings.EqualFold(e.name(), name) && e.node.value == nil })
}

func (o *object) has(names ...string) bool {
	for _, name := range names {
		if o.find(name) != nil {
			return true
		}
	}
	return false
}

// at returns the offset for a message about a field, that of the rule if the field is
// missing.
func (o *object) at(name string) int {
	if e := o.find(name); e != nil {
		return e.node.offset
	}
	return o.offset
}

// number returns what a field holds; the default when it is missing or not valid, which
// leaves the rule out.
func (o *object) number(name string, byDefault float64) float64 {
	e := o.find(name)
	if e == nil {
		return byDefault
	}
	written, ok := numberText(e.node)
	if !ok {
		o.mistype(e, "a number")
		return byDefault
	}
	v, err := strconv.ParseFloat(written, 64)
	if err != nil || v < 0 {
		o.drop(e.node.offset, "%s is %v: must be a number from 0", name, e.node)
		return byDefault
	}
	return math.Abs(v) // -0 is 0
}

func (o *object) whole(name string, byDefault int) int {
	v, most := o.number(name, float64(byDefault)), min(float64(math.MaxUint32), float64(math.MaxInt))
	if v != math.Trunc(v) || v > most {
		o.drop(o.at(name), "%s is %v: must be a whole number of at most %.0f", name, o.find(name).node, most)
		return byDefault
	}
	return int(v)
}

// positive is whole for a field without which Sentinel ignores the rule.
func (o *object) positive(name string, byDefault int) int {
	before := len(o.findings)
	v := o.whole(name, byDefault)
	if v == 0 && len(o.findings) == before {
		o.drop(o.at(name), "Sentinel ignores a rule whose %s is missing or 0: write one or remove the rule", name)
	}
	return v
}

func (o *object) text(name string) string {
	e := o.find(name)
	if e == nil {
		return ""
	}
	v, ok := e.node.value.(string)
	if !ok {
		o.mistype(e, "text")
	}
	return v
}

func (o *object) flag(name string) bool {
	e := o.find(name)
	if e == nil {
		return false
	}
	v, ok := truth(e.node)
	if !ok {
		o.mistype(e, "true or false")
	}
	return v
}

// numberText returns a number as it is written. The parsers of Sentinel for Java also take
// one in quotes.
func numberText(n node) (written string, ok bool) {
	switch v := n.value.(type) {
	case json.Number:
		return v.String(), true
	case string:
		trimmed := strings.TrimSpace(v)
		return trimmed, trimmed != "" && json.Valid([]byte(trimmed)) && strings.ContainsAny(trimmed[:1], "-0123456789")
	}
	return "", false
}

// truth returns a boolean, which the parsers of Sentinel for Java also take in quotes.
func truth(n node) (v, ok bool) {
	switch v := n.value.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	return false, false
}

// isSwitchedOff says whether the rule is not in force, and reports that: some dashboards
// keep such rules beside the others.
func (o *object) isSwitchedOff() bool {
	for _, name := range []string{"enabled", "enable", "isEnabled", "active", "disabled", "disable", "isDisabled"} {
		e := o.find(name)
		if e == nil {
			continue
		}
		on, ok := truth(e.node)
		if number, isNumber := numberText(e.node); isNumber && (number == "0" || number == "1") {
			on, ok = number == "1", true
		}
		switch off := strings.Contains(strings.ToLower(name), "disable"); {
		case !ok:
			o.mistype(e, "true or false")
			return true
		case on == off:
			o.add(Understood, e.node.offset, "it is switched off (%s: %v), so it is not written", name, e.node)
			return true
		}
	}
	return false
}

func (o *object) mistype(e *entry, want string) {
	o.drop(e.node.offset, "%s is %v: must be %s", e.name(), e.node, want)
}

// drop leaves the rule out.
func (o *object) drop(offset int, format string, args ...any) {
	o.dropped = true
	o.add(LeftOut, offset, format, args...)
}

// source returns the rule for a [batch].
func (o *object) source(pattern string) source {
	return source{o.offset, o.resource, pattern, o.notes}
}

// note says what all rules like this one do differently. It is reported once a file.
func (o *object) note(text string) { o.notes = append(o.notes, text) }

// differ reports what will behave differently.
func (o *object) differ(offset int, format string, args ...any) {
	o.add(Differs, offset, format, args...)
}

func (o *object) add(kind Kind, offset int, format string, args ...any) {
	o.findings = append(o.findings, Finding{
		Kind: kind, Resource: o.resource, Message: fmt.Sprintf(format, args...), offset: offset,
	})
}

// plainObject returns an object of another format than Sentinel's.
func plainObject(n node) *object {
	o := &object{offset: n.offset}
	var ok bool
	if o.entries, ok = n.value.([]entry); !ok {
		o.drop(n.offset, "%v: must be a mapping; a file of properties is to be written as YAML", n)
	}
	return o
}

// reportOthers reports the fields that are none of those that are known.
func (o *object) reportOthers(known ...string) {
	for _, e := range o.others(known) {
		o.add(LeftOut, e.key.offset, "the field %v is not known", e.key)
	}
}

// dropOthers is reportOthers where a field that is not known may change what the limit is: then it is not
// understood.
func (o *object) dropOthers(known ...string) {
	for _, e := range o.others(known) {
		o.drop(e.key.offset, "the field %v is not known", e.key)
	}
}

func (o *object) others(known []string) (others []entry) {
	for _, e := range o.entries {
		if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, e.name()) }) {
			others = append(others, e)
		}
	}
	return others
}
