package kindtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

func examplesShowEveryField(f *fixture) {
	kind := f.options.Kind
	shown := make(map[string]bool)
	for _, e := range kind.Examples() {
		for _, field := range e.Fields {
			shown[field] = true
		}
		if faults := e.Rule.Faults(); len(faults) > 0 {
			f.Errorf("the example %q has a mistake: %s %s", e.About, faults[0].Field, faults[0].Message)
		}
	}
	for _, field := range kind.Fields() {
		if !shown[field.Path] && !isCommon(field.Path) {
			f.Errorf("no example shows the field %q: add it to Spec.Examples", field.Path)
		}
		if field.About == "" {
			f.Errorf("the field %q has no description: add it with Field.Says", field.Path)
		}
	}
	if len(kind.Examples()) == 0 {
		f.Fatalf("the kind has no examples: add one to Spec.Examples")
	}
	document, err := f.table().Example(kind.Kind())
	if err != nil {
		f.Fatalf("the examples cannot be written: %v", err)
	}
	if _, err := f.table().Parse("example.yaml", document); err != nil {
		f.Errorf("the document of the examples cannot be read back: %v\n%s", err, document)
	}
}

// isCommon says whether rules of every kind have a field, which [rule.Define] shows in an example.
func isCommon(path string) bool {
	switch path {
	case "name", "resource", "match", "except", "perResource", "origin", "shadow":
		return true
	}
	return false
}

// mistakesAreFoundAtOnce reads a rule without all that it must have, and with fields that there are
// not.
func mistakesAreFoundAtOnce(f *fixture) {
	kind := f.options.Kind
	_, err := f.table().Parse("a.yaml", fmt.Appendf(nil, "%s: [{match: '[', noSuchField: 1, norThisOne: 2}]", kind.Kind()))
	if err == nil {
		f.Fatalf("a rule with an invalid pattern and unknown fields is no mistake")
	}
	for _, want := range []string{"match is", `"noSuchField"`, `"norThisOne"`} {
		if !strings.Contains(err.Error(), want) {
			f.Errorf("of several mistakes in a rule, one is not reported: %s: %v", want, err)
		}
	}
	for _, field := range kind.Fields() {
		if field.Missing != "" && len(field.Instead) == 0 && !strings.Contains(err.Error(), field.Path+" "+field.Missing) {
			f.Errorf("that the field %q is missing is not reported with other mistakes: %v", field.Path, err)
		}
	}
	for _, e := range kind.Examples() {
		f.checkValidation(e.Rule)
	}
}

// checkValidation gives a rule values that are mistakes each by itself, all at once.
func (f *fixture) checkValidation(r rule.Rule) {
	all, mistaken := r.Clone(), 0
	for _, field := range f.options.Kind.Fields() {
		if isCommon(field.Path) {
			continue
		}
		for _, v := range badValues() {
			one := r.Clone()
			if one.Set(field.Path, v) != "" {
				continue
			}
			faults := one.Faults()
			if slices.ContainsFunc(faults, func(fault rule.Fault) bool { return fault.Field == field.Path }) {
				all.Set(field.Path, v)
				mistaken++
				break
			}
		}
	}
	if got := len(all.Faults()); mistaken > 1 && got < 2 {
		f.Errorf("of a rule with %d mistakes in its fields, Spec.Validate returns %d", mistaken, got)
	}
}

func badValues() []document.Value {
	return []document.Value{
		{Type: document.Number, Text: "-1"},
		{Type: document.Number, Text: "0"},
		{Type: document.Number, Text: "1e308"},
		{Type: document.Number, Text: ".nan"},
		{Type: document.Number, Text: "2147483647"},
		{Type: document.Text, Text: "-1ns"},
		{Type: document.Text, Text: "2562047h"},
		{Type: document.Text, Text: "x"},
		{Type: document.Text, Text: "\x00\xff"},
		{},
		{Type: document.Boolean, Text: "true"},
		{Type: document.List},
		{Type: document.Mapping},
		{Type: document.List, Items: []document.Value{{}}},
	}
}

// badValuesPanicNowhere writes values of all types into each field of each example.
func badValuesPanicNowhere(f *fixture) {
	for _, e := range f.options.Kind.Examples() {
		for _, field := range f.options.Kind.Fields() {
			for _, v := range badValues() {
				f.noPanic(fmt.Sprintf("%s: %v", field.Path, v), func() {
					r := e.Rule.Clone()
					if r.Set(field.Path, v) == "" {
						_ = r.WithDefaults().Faults()
						_ = r.Faults()
					}
				})
			}
		}
	}
}

func (f *fixture) noPanic(what string, do func()) {
	f.Helper()
	defer func() {
		if v := recover(); v != nil {
			f.Errorf("it panics: %s: %v", what, v)
		}
	}()
	do()
}

// documentSaysWhatTheRuleIs writes the rule as a document and reads it back.
func documentSaysWhatTheRuleIs(f *fixture) {
	r := f.of.Rule
	if !r.WithDefaults().Equal(r) {
		f.Errorf("defaults change a rule that has them already")
	}
	if faults := r.Faults(); len(faults) > 0 {
		f.Fatalf("the rule has a mistake: %s %s", faults[0].Field, faults[0].Message)
	}
	set, err := f.table().Parse("rule.yaml", f.document(r))
	if err != nil {
		f.Fatalf("the document of the rule cannot be read: %v\n%s", err, f.document(r))
	}
	for read := range f.table().All(set) {
		if !read.Equal(r) {
			f.Errorf("the rule that its document has is another one:\n%s\n%s", f.document(r), f.document(read))
		}
	}
}

// document returns a document with the rule alone: the fields that it must have, and those that
// differ from a rule without any.
func (f *fixture) document(r rule.Rule) []byte {
	object := make(map[string]any)
	none := f.options.Kind.Draft()
	for _, field := range r.Type().Fields() {
		isGiven := func(path string) bool { return !r.SameField(path, none) }
		required := field.Missing != "" && !slices.ContainsFunc(field.Instead, isGiven)
		if !required && r.SameField(field.Path, none) {
			continue
		}
		at, path := object, field.Path
		if above, below, nested := strings.Cut(path, "."); nested {
			if at[above] == nil {
				at[above] = make(map[string]any)
			}
			at, path = at[above].(map[string]any), below
		}
		at[path] = plain(r.Get(field.Path))
	}
	document, err := json.Marshal(map[rule.Kind]any{r.Type().Kind(): []any{object}})
	if err != nil {
		f.Fatalf("the rule cannot be written: %v", err)
	}
	return document
}

// plain returns a value as package json writes it.
func plain(v document.Value) any {
	switch v.Type {
	case document.Number:
		return json.Number(v.Text)
	case document.Boolean:
		return v.Text == "true"
	case document.List:
		items := []any{}
		for _, item := range v.Items {
			items = append(items, plain(item))
		}
		return items
	case document.Mapping:
		entries := make(map[string]any)
		for _, e := range v.Entries {
			entries[e.Key] = plain(e.Value)
		}
		return entries
	}
	return v.Text
}
