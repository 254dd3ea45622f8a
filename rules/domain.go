package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// kindServe is the field of documents that says which domains are served. It is no kind of rules;
// positions and differences of a [Domain] have it in the place of one.
const kindServe rule.Kind = "serve"

// defaultDomainResource is the resource of the requests of a domain that says nothing else.
const defaultDomainResource = "{resource|generic_key}"

// Domain says that requests of a domain are served, which proxies make by the rate limit services of
// Envoy, and which calls they are. Package serve goes by it. An engine alone has no use for it: calls
// have the resources and attributes that programs give them.
type Domain struct {
	// Name is that of the domain. Required; at most [rule.MaxNameLength] bytes.
	Name string

	// Resource is the resource of a request: text in which a key in braces stands for the entry of
	// that key, as in "shop/{generic_key}", and several for the first of these entries that the request
	// has, as in "{resource|generic_key}". If it has none of them, the name of the domain stands there.
	// Defaults to "{resource|generic_key}".
	Resource string

	// Attributes are the keys of the entries that rules can see, as attributes of these keys. The
	// default, none, stands for all: "all" in documents.
	Attributes rule.Strings

	// Overdraw has a request pass as long as one token is left, and take all of its hits, though they are more
	// than what is left: they say what calls have used already, as the tokens of a response.
	Overdraw bool
}

// WithDefaults returns the domain with every field that was left out filled in.
func (d Domain) WithDefaults() Domain {
	d.Resource = cmp.Or(d.Resource, defaultDomainResource)
	return d
}

// Validate returns every mistake in the domain, none when it is sound. It judges the domain as
// [Domain.WithDefaults] completes it.
func (d Domain) Validate() []rule.Fault {
	var f rule.Faults
	if fault := rule.CheckName(d.Name); d.Name == "" {
		f.Add("domain", "is missing: name the domain that proxies send")
	} else if fault != "" {
		f.Add("domain", "%s", fault)
	}
	resource := d.WithDefaults().Resource
	if fault := rule.CheckName(resource); fault != "" {
		f.Add("resource", "%s", fault)
	} else if fault := templateFault(resource); fault != "" {
		f.Add("resource", "is %s: %s", rule.Quote(resource), fault)
	}
	for key := range d.Attributes.All() {
		if fault := rule.CheckName(key); fault != "" || key == "" {
			f.Add("attributes", "has the key %s: write keys of entries, such as user", rule.Quote(key))
			break
		}
	}
	return f
}

// templateFault says what is wrong with the braces of a resource, "" if nothing is.
func templateFault(resource string) string {
	const advice = ": write {key} for the entry of a key, {key|other} for the first of them that there is"
	open := -1
	for i, c := range []byte(resource) {
		switch {
		case c == '{' && open >= 0:
			return "there is a brace within braces" + advice
		case c == '{':
			open = i
		case c == '}' && open < 0:
			return "a brace is closed that was not opened" + advice
		case c == '}':
			for key := range strings.SplitSeq(resource[open+1:i], "|") {
				if key == "" || strings.TrimSpace(key) != key {
					return "a key is missing within the braces, or has blanks around it" + advice
				}
			}
			open = -1
		}
	}
	if open >= 0 {
		return "a brace is not closed" + advice
	}
	return ""
}

// ResourceOf returns the resource of a request of the domain, which must be sound and complete. entry
// returns the value of an entry, "" if there is none.
func (d *Domain) ResourceOf(entry func(key string) string) (resource string) {
	rest := d.Resource
	for {
		text, after, more := strings.Cut(rest, "{")
		resource += text
		if !more {
			return resource
		}
		var keys string
		keys, rest, _ = strings.Cut(after, "}")
		resource += d.fill(keys, entry)
	}
}

// fill returns what stands in place of keys.
func (d *Domain) fill(keys string, entry func(key string) string) string {
	for key := range strings.SplitSeq(keys, "|") {
		if value := entry(key); value != "" {
			return value
		}
	}
	return d.Name
}

// Sees says whether rules can see the entry of a key.
func (d *Domain) Sees(key string) bool {
	if d.Attributes.Len() == 0 {
		return true
	}
	for seen := range d.Attributes.All() {
		if seen == key {
			return true
		}
	}
	return false
}

// written returns the domain, which is complete, as documents write it.
func (d Domain) written() document.Value {
	v := document.Value{Type: document.Mapping, Entries: []document.Entry{{Key: "domain", Value: document.TextValue(d.Name)}}}
	if d.Resource != defaultDomainResource {
		v.Entries = append(v.Entries, document.Entry{Key: "resource", Value: document.TextValue(d.Resource)})
	}
	if d.Attributes.Len() > 0 {
		v.Entries = append(v.Entries, document.Entry{Key: "attributes", Value: d.seen()})
	}
	if d.Overdraw {
		v.Entries = append(v.Entries, document.Entry{Key: "overdraw", Value: document.Value{Type: document.Boolean, Text: "true"}})
	}
	return v
}

// seen returns the attributes as documents write them.
func (d Domain) seen() document.Value {
	if d.Attributes.Len() == 0 {
		return document.TextValue("all")
	}
	keys := document.Value{Type: document.List}
	for key := range d.Attributes.All() {
		keys.Items = append(keys.Items, document.TextValue(key))
	}
	return keys
}

// diffDomains returns the differences between the domains of two sets.
func diffDomains(from, to Set) (differences []Difference) {
	before, after := domainsByName(from), domainsByName(to)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, was := before[name]
		next, is := after[name]
		d := Difference{Kind: kindServe, Name: name, Change: Changed}
		switch {
		case was && is && old == next:
			continue
		case !was:
			d.Change = Added
		case !is:
			d.Change = Removed
		}
		d.Fields = diffDomain(old.WithDefaults(), next.WithDefaults())
		for i := range d.Fields {
			if !was {
				d.Fields[i].From = ""
			}
			if !is {
				d.Fields[i].To = ""
			}
		}
		differences = append(differences, d)
	}
	return differences
}

func diffDomain(from, to Domain) (fields []FieldDifference) {
	if from.Resource != to.Resource {
		fields = append(fields, FieldDifference{"resource", from.Resource, to.Resource})
	}
	if from.Attributes != to.Attributes {
		fields = append(fields, FieldDifference{"attributes", textOf(from.seen()), textOf(to.seen())})
	}
	if from.Overdraw != to.Overdraw {
		fields = append(fields, FieldDifference{"overdraw", strconv.FormatBool(from.Overdraw), strconv.FormatBool(to.Overdraw)})
	}
	return fields
}

func domainsByName(s Set) map[string]Domain {
	domains := make(map[string]Domain, len(s.Serve))
	for _, d := range s.Serve {
		domains[d.Name] = d.WithDefaults()
	}
	return domains
}

// Domain returns a domain of the set, complete; false if it has none of that name.
func (s Set) Domain(name string) (Domain, bool) {
	for _, d := range s.Serve {
		if d.Name == name {
			return d.WithDefaults(), true
		}
	}
	return Domain{}, false
}

// Dispute says which domains of a set are served otherwise elsewhere: [Problems], nil if none are. by
// returns what is said of the domain elsewhere and where, such as "the one at b.yaml:3:5"; false if
// nothing is.
func (s Set) Dispute(by func(name string) (other Domain, where string, found bool)) error {
	var problems Problems
	for _, d := range s.Serve {
		if other, where, found := by(d.Name); found && other.WithDefaults() != d.WithDefaults() {
			problems = append(problems, s.disputed(d.Name, where))
		}
	}
	return problems.Err()
}

// disputed is the problem of a domain that is served otherwise elsewhere.
func (s Set) disputed(name, where string) Problem {
	p := Problem{Field: string(kindServe), Message: fmt.Sprintf(
		"says of the domain %s other than %s: say the same, or say it once", rule.Quote(name), where)}
	if at, ok := s.Position(kindServe, name); ok {
		p.Document, p.Line, p.Column = at.Document, at.Line, at.Column
	}
	return p
}

// WhereDomain tells where a domain of the set stands: "the one at a.yaml:3:5".
func (s Set) WhereDomain(name string) string {
	if at, ok := s.Position(kindServe, name); ok {
		return "the one at " + at.String()
	}
	return "the one made in code"
}

// validateDomains judges the domains of a set that was made in code.
func validateDomains(s Set) (problems Problems) {
	taken := make(map[string]bool)
	for i, d := range s.Serve {
		faults := d.Validate()
		if taken[d.Name] {
			faults = append(faults, rule.Fault{Field: "domain", Message: "is there twice: remove one"})
		}
		taken[d.Name] = true
		for _, f := range faults {
			problems = append(problems, Problem{Field: fmt.Sprintf("%s[%d].%s", kindServe, i, f.Field), Message: f.Message})
		}
	}
	return problems
}

// mergeDomains adds the domains of sets to one. Several may say the same of a domain.
func mergeDomains(to *Set, from []Set) (problems Problems) {
	first := make(map[string]int) // of the sets
	for i, set := range from {
		for _, d := range set.Serve {
			j, found := first[d.Name]
			if !found {
				first[d.Name] = i
				to.Serve = append(to.Serve, d)
				if at, ok := set.Position(kindServe, d.Name); ok {
					to.positions[rule.Key{Kind: kindServe, Name: d.Name}] = at
				}
				continue
			}
			if domainsByName(from[j])[d.Name] != d.WithDefaults() {
				problems = append(problems, set.disputed(d.Name, from[j].WhereDomain(d.Name)))
			}
		}
	}
	return problems
}
