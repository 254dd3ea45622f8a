package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// readList adds the rules of a document's list to the set, complete.
func readList(l list, file string, value node, to *Set) Problems {
	kind := l.kind().Kind()
	if value.kind != document.List {
		return Problems{value.problem(string(kind), fmt.Sprintf(
			`is %v: must be a list of rules; write "%s: []" for none`, value.shape(), kind))}
	}
	var problems Problems
	for i, item := range value.items {
		r := reader{fields: fields(l.kind().Fields()), former: l.kind().Former(), rule: l.kind().Draft(), start: item.place}
		name := r.read(item)
		if name != "" {
			key := rule.Key{Kind: kind, Name: name}
			if other, taken := to.positions[key]; taken {
				fault := nameTaken("the rule at " + other.String())
				r.judged(fault.Field, fault.Message)
			} else {
				to.positions[key] = Position{file, item.line, item.column}
			}
		}
		l.add(to, r.rule)
		for _, p := range r.problems {
			p.Kind, p.Index, p.Rule = kind, i, name
			problems = append(problems, p)
		}
	}
	return problems
}

// fields is what a rule has, in the order of writing.
type fields []document.Field

// names returns what may stand in the mapping that the prefix leads to: "" is
// the rule itself, "warmUp." the mapping below it.
func (fs fields) names(prefix string) []string {
	var names []string
	for _, f := range fs {
		rest, below := strings.CutPrefix(f.Path, prefix)
		name, _, _ := strings.Cut(rest, ".")
		if below && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// find returns the field of the path, nil when that leads to a mapping.
func (fs fields) find(path string) *document.Field {
	for i := range fs {
		if fs[i].Path == path {
			return &fs[i]
		}
	}
	return nil
}

// reader reads one rule.
type reader struct {
	fields   fields
	former   []document.Former
	rule     rule.Rule        // as far as it has been read, complete at the end
	start    place            // where it begins
	places   map[string]place // of the values given, by their paths
	given    map[string]node  // the values given of former fields, by their paths
	unsound  map[string]bool  // paths whose values cannot be read
	hidden   bool             // some fields cannot be read at all
	problems Problems         // without the rule's name as yet
}

// read returns the name of the rule, "" when it cannot be read.
func (r *reader) read(item node) (name string) {
	r.places = make(map[string]place)
	r.given = make(map[string]node)
	r.unsound = make(map[string]bool)
	if item.fault != "" {
		r.report(item.place, "", "the rule "+item.fault)
	}
	switch item.kind {
	case kindUnread:
		return ""
	case document.Mapping:
		r.readMapping("", item)
	default:
		r.report(item.place, "", fmt.Sprintf(
			"the entry is %v: write a rule here, such as {resource: orders, limit: 100}, or remove it", item.shape()))
		return ""
	}
	r.judge()
	if r.unsound["name"] {
		return ""
	}
	return r.rule.Key().Name
}

// readMapping reads the fields of the mapping that the prefix leads to.
func (r *reader) readMapping(prefix string, m node) {
	keys := judgeKeys(m, prefix, r.fields.names(prefix), r.formerNames(prefix)...)
	r.problems = append(r.problems, keys.problems...)
	r.hidden = r.hidden || keys.hidden
	for _, e := range keys.entries {
		r.readField(prefix+e.key.text, e.value)
	}
	for _, meant := range keys.meant {
		if _, given := r.places[prefix+meant]; !given {
			r.unsound[prefix+meant] = true // it would only be said to be missing
		}
	}
}

func (r *reader) readField(path string, value node) {
	r.places[path] = value.place
	if value.fault != "" {
		r.fail(path, value.fault)
	}
	f := r.fields.find(path)
	switch {
	case value.kind == kindUnread:
	case value.kind == document.Null:
		r.fail(path, "is left empty: write a value or remove the field")
	case f != nil && value.nestedFault() != "":
		r.fail(path, "has an entry that "+value.nestedFault())
	case f != nil:
		if fault := r.rule.Set(path, value.value()); fault != "" {
			r.fail(path, fault)
		}
	case slices.Contains(r.formerNames(""), path):
		r.given[path] = value
	case value.kind != document.Mapping || len(value.entries) == 0:
		r.fail(path, fmt.Sprintf("is %v: must be a mapping with some of the fields %s",
			value, strings.Join(r.fields.names(path+"."), ", ")))
	default:
		r.readMapping(path+".", value)
	}
}

// formerNames returns what may stand in the mapping that the prefix leads to in
// older documents.
func (r *reader) formerNames(prefix string) (names []string) {
	if prefix == "" {
		for _, f := range r.former {
			names = append(names, f.Path)
		}
	}
	return names
}

// readFormer takes the values of former fields over. What depends on a field is not
// judged while it cannot be read what a former one says of it.
func (r *reader) readFormer() {
	for _, f := range r.former {
		if value, given := r.given[f.Path]; given {
			if fault := r.rule.SetFormer(f.Path, value.value()); fault != "" {
				r.fail(f.Path, fault)
			}
		}
		r.unsound[f.Now] = r.unsound[f.Now] || r.unsound[f.Path]
	}
}

// judge completes the rule and finds what is wrong with it as a whole.
func (r *reader) judge() {
	r.readFormer()
	given := r.rule
	r.rule = given.WithDefaults()
	for _, f := range r.fields {
		_, present := r.places[f.Path]
		_, instead := r.places[f.Instead]
		switch {
		case !present && f.Missing != "" && !instead:
			r.judged(f.Path, f.Missing)
			r.unsound[f.Path] = true // nothing more is said of its value
		case present && !given.SameField(f.Path, r.rule):
			r.judged(f.Path, fmt.Sprintf("is %v: leave the field out for the default, %v",
				given.Get(f.Path), r.rule.Get(f.Path)))
		}
	}
	for _, fault := range given.Faults() {
		r.judged(fault.Field, fault.Message)
	}
}

// judged reports a fault, unless it may come of one in reading the document.
func (r *reader) judged(path, message string) {
	unsound := func(path string) bool { return r.unsound[path] }
	_, given := r.places[path]
	f := r.fields.find(path)
	if unsound(path) || r.hidden && !given || f != nil && slices.ContainsFunc(f.Needs, unsound) {
		return
	}
	r.report(r.placeOf(path), path, message)
}

// fail reports that the value of a field cannot be read.
func (r *reader) fail(path, message string) {
	r.unsound[path] = true
	r.report(r.places[path], path, message)
}

func (r *reader) report(at place, path, message string) {
	r.problems = append(r.problems, at.problem(path, message))
}

// placeOf returns where the value of the field stands, or else the mapping that
// lacks it.
func (r *reader) placeOf(path string) place {
	if at, ok := r.places[path]; ok {
		return at
	}
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		return r.placeOf(path[:dot])
	}
	return r.start
}
