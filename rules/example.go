package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// Example returns a document in YAML that [Table.Parse] accepts and that shows, with
// comments, every field that rules of the kinds may have, and its default. It is
// of all kinds of the table when none is given. The error is that there is no such kind.
func (t *Table) Example(kinds ...rule.Kind) ([]byte, error) {
	for _, kind := range kinds {
		if t.find(kind) == nil {
			return nil, fmt.Errorf("rules: there is no kind %s of rules: there are %s", rule.Quote(string(kind)), joined(t.kinds()))
		}
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "# A document of rules with every field that they may have. One that is left out")
	fmt.Fprintln(&text, "# has its default. A document that has no rules says so: \"flow: []\".")
	for _, kind := range t.Definitions() {
		if len(kinds) > 0 && !slices.Contains(kinds, kind.Kind()) {
			continue
		}
		fmt.Fprintf(&text, "\n%s:\n", kind.Kind())
		if err := showKind(&text, kind); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func joined(kinds []rule.Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// showKind writes rules that show every field of a kind between them.
func showKind(to *bytes.Buffer, kind rule.Definition) error {
	explained := make(map[string]bool)
	for i, example := range kind.Examples() {
		if i > 0 {
			fmt.Fprintln(to)
		}
		fmt.Fprintf(to, "  # %s\n", example.About)
		if err := showRule(to, example, explained); err != nil {
			return err
		}
	}
	return nil
}

// showRule writes a rule, with comments on the fields that are not explained yet.
func showRule(to *bytes.Buffer, e rule.Example[rule.Rule], explained map[string]bool) error {
	complete := e.Rule.WithDefaults()
	indent, within := "  - ", ""
	for _, path := range e.Fields {
		f := fields(complete.Type().Fields()).find(path)
		shown := toYAML(complete.Get(path))
		shown.Style |= yaml.FlowStyle // on one line
		value, err := yaml.Dump(shown)
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
			line = fmt.Sprintf("%-34s # %s; %s", line, f.About, without(f, e.Rule))
		}
		fmt.Fprintln(to, line)
		indent = "    "
	}
	return nil
}

// without says what it means to leave a field out.
func without(f *document.Field, r rule.Rule) string {
	switch {
	case f.Missing != "" && len(f.Instead) > 0:
		return "required, or " + strings.Join(f.Instead, " or ")
	case f.Missing != "":
		return "required"
	}
	r = r.Clone()
	r.Reset(f.Path)
	return "default: " + cmp.Or(f.Default, r.WithDefaults().Get(f.Path).Text)
}
