package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// example is a rule that shows some of the fields.
type example[R any] struct {
	about  string
	rule   R
	fields []string // in the order of writing
}

// Kinds returns every kind of rule there is, in the order of documents.
func Kinds() []Kind {
	var kinds []Kind
	for _, section := range sections() {
		kinds = append(kinds, section.name())
	}
	return kinds
}

// Example returns a document in YAML that [Parse] accepts and that shows, with
// comments, every field that rules of the kinds may have, and its default. It is
// of all kinds when none is given. The error is that there is no such kind.
func Example(kinds ...Kind) ([]byte, error) {
	for _, kind := range kinds {
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("rules: there is no kind %s of rules: there are %s", quote(string(kind)), joined(Kinds()))
		}
	}
	var document bytes.Buffer
	fmt.Fprintln(&document, "# A document of rules with every field that they may have. One that is left out")
	fmt.Fprintln(&document, "# has its default. A document that has no rules says so: \"flow: []\".")
	for _, section := range sections() {
		if len(kinds) > 0 && !slices.Contains(kinds, section.name()) {
			continue
		}
		fmt.Fprintf(&document, "\n%s:\n", section.name())
		if err := section.example(&document); err != nil {
			return nil, err
		}
	}
	return document.Bytes(), nil
}

func joined(kinds []Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

func (s schema[R]) example(to *bytes.Buffer) error {
	explained := make(map[string]bool)
	for i, example := range s.examples() {
		if i > 0 {
			fmt.Fprintln(to)
		}
		fmt.Fprintf(to, "  # %s\n", example.about)
		if err := s.showRule(to, example, explained); err != nil {
			return err
		}
	}
	return nil
}

// showRule writes a rule, with comments on the fields that are not explained yet.
func (s schema[R]) showRule(to *bytes.Buffer, e example[R], explained map[string]bool) error {
	rule := s.fill(e.rule)
	indent, within := "  - ", ""
	for _, path := range e.fields {
		f := s.fields.find(path)
		value, err := yaml.Dump(toYAML(f.write(&rule)))
		if err != nil {
			return fmt.Errorf("rules: writing YAML: %w", err)
		}
		name := path
		if mapping, below, nested := strings.Cut(path, "."); nested {
			if within != mapping {
				fmt.Fprintf(to, "%s%s:\n", indent, mapping)
				indent, within = "    ", mapping
			}
			name = "  " + below
		}
		line := fmt.Sprintf("%s%s: %s", indent, name, bytes.TrimSpace(value))
		if !explained[path] {
			explained[path] = true
			line = fmt.Sprintf("%-34s # %s; %s", line, f.about, s.without(f, e.rule))
		}
		fmt.Fprintln(to, line)
		indent = "    "
	}
	return nil
}

// without says what it means to leave a field out.
func (s schema[R]) without(f *field[R], rule R) string {
	if f.missing != "" {
		return "required"
	}
	f.reset(&rule)
	rule = s.fill(rule)
	return "default: " + cmp.Or(f.byDefault, f.write(&rule).text)
}
