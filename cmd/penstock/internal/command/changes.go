package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// printChanges prints changes: rule by rule, then the documents, then the counts.
func (env Env) printChanges(changes documents.Changes) {
	if changes.None() {
		fmt.Fprintln(env.Out, "no differences")
		return
	}
	p := env.painter()
	for _, change := range changes.Rules {
		p.printRule(env, change)
	}
	fmt.Fprintln(env.Out, "documents:")
	for _, change := range changes.Documents {
		fmt.Fprintln(env.Out, " ", p.sign(change.Change, wording.Printable(change.Name)))
	}
	fmt.Fprintf(env.Out, "%s; %s\n", countRules(changes.Rules), countDocuments(changes.Documents))
}

func (p painter) printRule(env Env, c documents.RuleChange) {
	title := wording.Printable(fmt.Sprintf("%s %s", c.Kind, c.Name))
	home := wording.Printable(fmt.Sprintf(" (%s)", documentsOf(c)))
	switch {
	case c.Moved:
		fmt.Fprintln(env.Out, p.paint(cyan, "> "+title)+home)
	case c.Change == rules.Changed:
		fmt.Fprintln(env.Out, p.sign(c.Change, title)+home)
		for _, f := range c.Fields {
			fmt.Fprintf(env.Out, "    %s: %s → %s\n", f.Field, orNone(f.From), orNone(f.To))
		}
	default:
		fmt.Fprintf(env.Out, "%s%s: %s\n", p.sign(c.Change, title), home, allFields(c.Difference))
	}
}

// documentsOf returns the document of a rule, or both documents if it moves.
func documentsOf(c documents.RuleChange) string {
	if c.From != "" && c.To != "" && c.From != c.To {
		return c.From + " → " + c.To
	}
	return cmp.Or(c.To, c.From)
}

func allFields(d rules.Difference) string {
	fields := make([]string, len(d.Fields))
	for i, f := range d.Fields {
		fields[i] = f.Field + " " + orNone(cmp.Or(f.To, f.From))
	}
	return strings.Join(fields, ", ")
}

func orNone(value string) string { return cmp.Or(wording.Printable(value), "none") }

// countRules returns the number of rules by kind of change.
func countRules(changes []documents.RuleChange) string {
	count := make(map[string]int)
	for _, c := range changes {
		count[c.Word()]++
	}
	return joinCounts("rule", "rules do not change", count, "added", "changed", "removed", "moved")
}

func countDocuments(changes []documents.DocumentChange) string {
	count := make(map[string]int)
	for _, c := range changes {
		count[string(c.Change)]++
	}
	return joinCounts("document", "documents do not change", count, "added", "changed", "removed")
}

// joinCounts returns text such as "1 rule added, 2 changed", or none if all counts are 0.
func joinCounts(thing, none string, count map[string]int, words ...string) string {
	var parts []string
	for _, word := range words {
		switch n := count[word]; {
		case n == 0:
		case len(parts) == 0:
			parts = append(parts, wording.Count(n, thing)+" "+word)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), none)
}

type fieldJSON struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

type ruleJSON struct {
	Kind   rule.Kind   `json:"kind"`
	Name   string      `json:"name"`
	Change string      `json:"change"` // added, changed, removed, moved
	From   string      `json:"from"`   // document; To as well
	To     string      `json:"to"`
	Fields []fieldJSON `json:"fields"`
}

type documentJSON struct {
	Name   string `json:"name"`
	Change string `json:"change"`
}

// changesJSON returns changes for JSON. revision is that of etcd, 0 if not compared
// with etcd.
func changesJSON(changes documents.Changes, revision int64) any {
	rules := make([]ruleJSON, len(changes.Rules))
	for i, c := range changes.Rules {
		rules[i] = ruleJSON{c.Kind, c.Name, c.Word(), c.From, c.To, make([]fieldJSON, len(c.Fields))}
		for j, f := range c.Fields {
			rules[i].Fields[j] = fieldJSON(f)
		}
	}
	documents := make([]documentJSON, len(changes.Documents))
	for i, c := range changes.Documents {
		documents[i] = documentJSON{c.Name, string(c.Change)}
	}
	return struct {
		Revision  int64          `json:"revision"`
		Rules     []ruleJSON     `json:"rules"`
		Documents []documentJSON `json:"documents"`
	}{revision, rules, documents}
}
