package rules

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// serveAdvice says what may stand in the field serve.
const serveAdvice = "must be a mapping such as {domain: shop}, or a list of such"

// readServe adds the domains that a document says are served to the set, complete.
func readServe(file string, value node, to *Set) Problems {
	items := []node{value}
	switch {
	case value.kind == document.List && len(value.items) > 0:
		items = value.items
	case value.kind == document.List:
		return Problems{value.problem(string(kindServe), "is an empty list: "+serveAdvice+"; or remove the field")}
	}
	var problems Problems
	for _, item := range items {
		r := domainReader{places: make(map[string]place)}
		r.read(item)
		key := rule.Key{Kind: kindServe, Name: r.domain.Name}
		if other, taken := to.positions[key]; taken && len(r.problems) == 0 {
			r.fail(r.places["domain"], "domain", fmt.Sprintf("is %s, as at %v: remove one", rule.Quote(r.domain.Name), other))
		}
		if problems = append(problems, r.problems...); len(r.problems) == 0 {
			to.positions[key] = Position{file, item.line, item.column}
			to.Serve = append(to.Serve, r.domain)
		}
	}
	return problems
}

// domainReader reads a [Domain].
type domainReader struct {
	domain   Domain
	places   map[string]place // of the values that were given
	unsound  bool             // something cannot be read
	problems Problems
}

func (r *domainReader) read(item node) {
	if item.fault != "" {
		r.problems = append(r.problems, item.problem(string(kindServe), item.fault))
	}
	switch item.kind {
	case kindUnread:
		return
	case document.Mapping:
	default:
		r.problems = append(r.problems, item.problem(string(kindServe), fmt.Sprintf("is %v: %s", item.shape(), serveAdvice)))
		return
	}
	keys := judgeKeys(item, string(kindServe)+".", []string{"domain", "resource", "attributes", "overdraw"})
	r.problems, r.unsound = keys.problems, keys.hidden || len(keys.problems) > 0
	for _, e := range keys.entries {
		r.places[e.key.text] = e.value.place
		if fault := r.set(e.key.text, e.value); fault != "" {
			r.unsound = true
			r.fail(e.value.place, e.key.text, fault)
		}
	}
	r.domain = r.domain.WithDefaults()
	for _, fault := range r.domain.Validate() {
		at, given := r.places[fault.Field]
		switch {
		case given && !r.unsound:
			r.fail(at, fault.Field, fault.Message)
		case !given && !r.unsound:
			r.fail(item.place, fault.Field, fault.Message)
		}
	}
}

// set reads the value of a field and returns what is wrong with it.
func (r *domainReader) set(field string, value node) string {
	switch {
	case value.fault != "":
		return value.fault
	case value.nestedFault() != "":
		return "has an entry that " + value.nestedFault()
	case value.kind == document.Null:
		return "is left empty: write a value or remove the field"
	case field == "domain":
		return readTextOf(value, &r.domain.Name)
	case field == "resource":
		return readTextOf(value, &r.domain.Resource)
	case field == "overdraw" && value.kind != document.Boolean:
		return fmt.Sprintf("is %v: must be true or false", value)
	case field == "overdraw":
		r.domain.Overdraw = strings.EqualFold(value.text, "true")
		return ""
	case value.kind == document.Text && value.text == "all":
		return ""
	case value.kind != document.List || len(value.items) == 0:
		return fmt.Sprintf("is %v: must be all, or a list of the keys of entries that rules can see", value)
	}
	var keys []string
	for _, item := range value.items {
		var key string
		if fault := readTextOf(item, &key); fault != "" {
			return "has an entry that " + fault
		}
		keys = append(keys, key)
	}
	r.domain.Attributes = rule.StringsOf(keys...)
	return ""
}

// readTextOf reads text that is not empty.
func readTextOf(value node, to *string) string {
	switch {
	case value.kind == document.Number || value.kind == document.Boolean:
		return fmt.Sprintf("is %v: must be text; put it in quotes, %q", value, value.text)
	case value.kind != document.Text:
		return fmt.Sprintf("is %v: must be text; if it begins with a brace, put it in quotes", value)
	case value.text == "":
		return `is "": write something or remove the field`
	}
	*to = value.text
	return ""
}

// fail reports a mistake in a field.
func (r *domainReader) fail(at place, field, message string) {
	r.problems = append(r.problems, at.problem(string(kindServe)+"."+field, message))
}
