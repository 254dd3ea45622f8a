package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/simulate"
)

// callsReader gathers what an expectation says of the calls that it is about. It is read
// when the resource is known.
type callsReader struct{ value, attrs, each *yaml.Node }

func (c callsReader) all() bool { return c.value == nil && c.attrs == nil && c.each == nil }

// read returns which calls are meant. It reports values that no call of the load has.
func (c callsReader) read(r *reader, load Load, resource string) calls {
	known := attributesOf(load, resource)
	var meant calls
	if c.value != nil {
		var first []simulate.Attr
		for _, attrs := range known {
			if len(attrs) > 0 {
				first = append(first, attrs[0])
			}
		}
		meant.first = r.values(c.value, "value", first, load.bad)
	}
	if c.attrs != nil {
		meant.attrs = r.expectedAttrs(c.attrs, slices.Concat(known...), load.bad)
	}
	if c.each != nil {
		for _, item := range items(c.each) {
			name := r.text(item, "each")
			meant.each = append(meant.each, name)
			r.knownAttribute(item, name, slices.Concat(known...), load.bad)
		}
		if len(meant.each) == 0 {
			r.fail(placeOf(c.each), "each", "is an empty list: name the attribute whose values are meant")
		}
	}
	return meant
}

// attributesOf returns the attributes of the streams of a resource, "" for all.
func attributesOf(load Load, resource string) (list [][]simulate.Attr) {
	for _, s := range load.Streams {
		if resource == "" || s.Resource == resource {
			list = append(list, s.Attrs)
		}
	}
	return list
}

// expectedAttrs reads a mapping of attributes to the values that are meant.
func (r *reader) expectedAttrs(n *yaml.Node, known []simulate.Attr, unsure bool) (list []callsWith) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.fail(placeOf(n), "attrs", "is %s: must be a mapping of names to values, such as {user: u1}", describe(n))
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := r.text(n.Content[i], "attrs")
		if slices.ContainsFunc(list, func(of callsWith) bool { return of.name == name }) {
			r.fail(placeOf(n.Content[i]), "attrs."+name, "is given twice: write a list of values")
		}
		var of []simulate.Attr
		if r.knownAttribute(n.Content[i], name, known, unsure) {
			of = slices.DeleteFunc(slices.Clone(known), func(a simulate.Attr) bool { return a.Name != name })
		}
		list = append(list, callsWith{name, r.values(n.Content[i+1], "attrs."+name, of, unsure || of == nil)})
	}
	return list
}

// knownAttribute says whether calls of the load have an attribute, and reports it if not.
func (r *reader) knownAttribute(n *yaml.Node, name string, known []simulate.Attr, unsure bool) bool {
	var list nameList
	for _, a := range known {
		if !slices.Contains(list, a.Name) {
			list = append(list, a.Name)
		}
	}
	switch {
	case name == "" || unsure || slices.Contains(list, name):
		return true
	case len(list) == 0:
		r.fail(placeOf(n), "", "the calls have no attribute %s: give the streams attrs", wording.Quote(name))
	default:
		r.unknown(placeOf(n), "attribute", name, list)
	}
	return false
}

// values reads a value of an attribute, or a list of them.
func (r *reader) values(n *yaml.Node, field string, of []simulate.Attr, unsure bool) []any {
	list := []any{}
	for _, item := range items(n) {
		if !isScalar(item) {
			r.fail(placeOf(item), field, "is %s: must be a value of an attribute, or a list of values", describe(item))
			continue
		}
		value := r.attribute(item, field)
		list = append(list, value)
		has := func(a simulate.Attr) bool { return canHave(a, value) }
		if !unsure && !slices.ContainsFunc(of, has) {
			r.fail(placeOf(item), field, "is %s, which no call has: %s", showValues([]any{value}), wording.Printable(adviceOn(value, of)))
		}
	}
	if len(items(n)) == 0 {
		r.fail(placeOf(n), field, "is an empty list: write the values that are meant")
	}
	return list
}

// adviceOn says which values calls have.
func adviceOn(value any, of []simulate.Attr) string {
	if len(of) == 0 {
		return "the streams have no attrs"
	}
	for _, a := range of {
		switch v := value.(type) {
		case string:
			if plain := parseAttribute(v); plain != value && canHave(a, plain) {
				return fmt.Sprintf("%s has %v without quotes", a.Name, plain)
			}
		default:
			if text := fmt.Sprint(v); canHave(a, text) {
				return fmt.Sprintf("%s has the text %q: put it in quotes", a.Name, text)
			}
		}
	}
	const most = 5
	var parts []string
	for _, a := range of {
		values := fmt.Sprintf("%s-1 to %s-%d", a.Name, a.Name, a.Count)
		if len(a.Values) > 0 {
			values = showValues(a.Values[:min(most, len(a.Values))])
			if more := len(a.Values) - most; more > 0 {
				values += fmt.Sprintf(" and %d more", more)
			}
		}
		if part := a.Name + " has " + values; !slices.Contains(parts, part) && len(parts) < most {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// canHave says whether calls with the attribute may have the value.
func canHave(a simulate.Attr, value any) bool {
	if len(a.Values) > 0 {
		return slices.Contains(a.Values, value)
	}
	text, _ := value.(string)
	digits, ok := strings.CutPrefix(text, a.Name+"-")
	n, err := strconv.Atoi(digits)
	return ok && err == nil && n >= 1 && n <= a.Count && strconv.Itoa(n) == digits
}
