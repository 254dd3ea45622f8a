package rules

import (
	"fmt"
	"slices"
	"strings"
)

func (s schema[R]) read(document string, value node, to *Set) Problems {
	if value.kind != kindList {
		return Problems{value.problem(string(s.kind), fmt.Sprintf(
			`is %v: must be a list of rules; write "%s: []" for none`, value, s.kind))}
	}
	var problems Problems
	rules := s.rules(to)
	for i, item := range value.items {
		r := reader[R]{schema: s, start: item.place}
		name := r.read(item)
		if name != "" {
			key := Key{s.kind, name}
			if other, taken := to.positions[key]; taken {
				fault := nameTaken("the rule at " + other.String())
				r.judged(fault.Field, fault.Message)
			} else {
				to.positions[key] = Position{document, item.line, item.column}
			}
		}
		*rules = append(*rules, r.rule)
		for _, p := range r.problems {
			p.Kind, p.Index, p.Rule = s.kind, i, name
			problems = append(problems, p)
		}
	}
	return problems
}

// reader reads one rule.
type reader[R any] struct {
	schema[R]
	start    place            // where the rule begins
	rule     R                // as far as it has been read, complete at the end
	places   map[string]place // of the values given, by their paths
	former   map[string]node  // the values given of former fields, by their paths
	unsound  map[string]bool  // paths whose values cannot be read
	hidden   bool             // some fields cannot be read at all
	problems Problems         // without the rule's name as yet
}

// read returns the name of the rule, "" when it cannot be told.
func (r *reader[R]) read(item node) (name string) {
	r.places = make(map[string]place)
	r.former = make(map[string]node)
	r.unsound = make(map[string]bool)
	if item.fault != "" {
		r.report(item.place, "", "the rule "+item.fault)
	}
	switch item.kind {
	case kindUnread:
		return ""
	case kindMapping:
		r.readMapping("", item)
	default:
		r.report(item.place, "", fmt.Sprintf(
			"the entry is %v: write a rule here, such as {resource: orders, limit: 100}, or remove it", item))
		return ""
	}
	r.judge()
	if r.unsound["name"] {
		return ""
	}
	return r.nameOf(r.rule)
}

// readMapping reads the fields of the mapping that the prefix leads to.
func (r *reader[R]) readMapping(prefix string, m node) {
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

func (r *reader[R]) readField(path string, value node) {
	r.places[path] = value.place
	if value.fault != "" {
		r.fail(path, value.fault)
	}
	f := r.fields.find(path)
	switch {
	case value.kind == kindUnread:
	case value.kind == kindNull:
		r.fail(path, "is left empty: write a value or remove the field")
	case f != nil:
		if fault := f.read(&r.rule, value); fault != "" {
			r.fail(path, fault)
		}
	case r.isFormer(path):
		r.former[path] = value
	case value.kind != kindMapping || len(value.entries) == 0:
		r.fail(path, fmt.Sprintf("is %v: must be a mapping with some of the fields %s",
			value, strings.Join(r.fields.names(path+"."), ", ")))
	default:
		r.readMapping(path+".", value)
	}
}

func (s schema[R]) isFormer(path string) bool { return slices.Contains(s.formerNames(""), path) }

// formerNames returns what may stand in the mapping that the prefix leads to in
// older documents.
func (s schema[R]) formerNames(prefix string) (names []string) {
	if prefix == "" {
		for _, f := range s.formerFields {
			names = append(names, f.path)
		}
	}
	return names
}

// readFormer takes the values of former fields over. What depends on a field is not
// judged while it cannot be read what a former one says of it.
func (r *reader[R]) readFormer() {
	for _, f := range r.formerFields {
		if value, given := r.former[f.path]; given {
			if fault := f.read(&r.rule, value); fault != "" {
				r.fail(f.path, fault)
			}
		}
		r.unsound[f.now] = r.unsound[f.now] || r.unsound[f.path]
	}
}

// judge completes the rule and finds what is wrong with it as a whole.
func (r *reader[R]) judge() {
	r.readFormer()
	given := r.rule
	r.rule = r.fill(given)
	for _, f := range r.fields {
		_, present := r.places[f.path]
		switch {
		case !present && f.missing != "":
			r.judged(f.path, f.missing)
		case present && !f.equal(&given, &r.rule):
			r.judged(f.path, fmt.Sprintf("is %v: leave the field out for the default, %v",
				f.write(&given), f.write(&r.rule)))
		}
	}
	for _, fault := range r.faults(&given) {
		r.judged(fault.Field, fault.Message)
	}
}

// judged reports a fault, unless it may come of one in reading the document.
func (r *reader[R]) judged(path, message string) {
	unsound := func(path string) bool { return r.unsound[path] }
	_, given := r.places[path]
	f := r.fields.find(path)
	if unsound(path) || r.hidden && !given || f != nil && slices.ContainsFunc(f.needs, unsound) {
		return
	}
	r.report(r.placeOf(path), path, message)
}

// fail reports that the value of a field cannot be read.
func (r *reader[R]) fail(path, message string) {
	r.unsound[path] = true
	r.report(r.places[path], path, message)
}

func (r *reader[R]) report(at place, path, message string) {
	r.problems = append(r.problems, at.problem(path, message))
}

// placeOf returns where the value of the field stands, or else the mapping that
// lacks it.
func (r *reader[R]) placeOf(path string) place {
	if at, ok := r.places[path]; ok {
		return at
	}
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		return r.placeOf(path[:dot])
	}
	return r.start
}
