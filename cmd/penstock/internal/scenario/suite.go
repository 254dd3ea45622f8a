package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Suite is a test file: rules, and cases that say what to expect of them.
type Suite struct {
	// Rules are those that stand in the file itself.
	Rules rules.Set

	// RuleFiles are the paths of files or directories that hold the rules, as the
	// file names them: relative to where it lies. Empty when they stand in it.
	RuleFiles []string

	// Cases are in the order of the file. There is at least one, and no two have
	// the same name.
	Cases []Case
}

// ParseSuite reads a test file. The document is what messages call it. The error
// is [rules.Problems]: every mistake there is, those in the rules included. Rules may be of the
// given kinds, beside those that come with Penstock.
func ParseSuite(document string, data []byte, kinds ...rule.Definition) (Suite, error) {
	r, root := open(document, data)
	r.kinds = kinds
	if root == nil {
		return Suite{}, r.problems.Err()
	}
	var s Suite
	var length time.Duration
	var cases *yaml.Node
	found := r.mapping(root, "the document",
		field{"rules", func(n *yaml.Node) { s.Rules, s.RuleFiles = r.rules(root, n) }},
		field{"duration", func(n *yaml.Node) { length = r.positive(n, "duration") }},
		field{"cases", func(n *yaml.Node) { cases = n }},
	)
	if _, ok := found["rules"]; !ok && found != nil {
		r.fail(placeOf(root), "rules", "is missing: write them out, or name the files or directories that hold them")
	}
	if cases == nil && found != nil {
		r.fail(placeOf(root), "cases", "is missing: list what is tested")
	}
	if cases != nil {
		s.Cases = r.cases(cases, length)
		for i := range s.Cases {
			s.Cases[i].kinds = kinds
		}
	}
	if err := r.problems.Err(); err != nil {
		return Suite{}, err
	}
	return s, nil
}

// cases reads the list of cases. The duration is that of cases without one.
func (r *reader) cases(n *yaml.Node, length time.Duration) []Case {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.fail(placeOf(n), "cases", "is %s: must be a list of cases, each with name, load and expect", describe(n))
		return nil
	}
	lines := make(map[string]int)
	var list []Case
	for _, item := range n.Content {
		c := r.readCase(item, length)
		if line, taken := lines[c.Name]; taken && c.Name != "" {
			r.fail(place{c.Line, c.column}, "name", "is %s, as that of the case on line %d: give one of them another", wording.Quote(c.Name), line)
		}
		lines[c.Name] = c.Line
		list = append(list, c)
	}
	return list
}

// rules reads the rules of the document: written out, or the paths of files.
func (r *reader) rules(root, n *yaml.Node) (rules.Set, []string) {
	if n.Kind == yaml.MappingNode {
		return r.inlineRules(root, n), nil
	}
	var files []string
	for _, item := range items(n) {
		switch {
		case !isScalar(item) || item.Value == "":
			r.fail(placeOf(item), "rules", "is %s: must be rules, or the path of a file or a directory that holds them", describe(item))
		default:
			files = append(files, item.Value)
		}
	}
	if len(items(n)) == 0 {
		r.fail(placeOf(n), "rules", "is an empty list: name a file, or write %s: [] for no rules", rules.NewTable().Definitions()[0].Kind())
	}
	return rules.Set{}, files
}

// inlineRules reads rules that are written out in the document. What is around
// them is blanked, so that they keep their lines and columns.
func (r *reader) inlineRules(root, n *yaml.Node) rules.Set {
	if root.Style&yaml.FlowStyle != 0 {
		r.fail(placeOf(n), "rules", "is written out in a document in braces: put the rules into a file of their own and name it here")
		return rules.Set{}
	}
	end := len(r.lines)
	for i := 0; i < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Line > n.Line {
			end = min(end, key.Line-1)
		}
	}
	first := r.lines[n.Line-1]
	begin := min(n.Column-1, len(first))
	var text strings.Builder
	text.WriteString(strings.Repeat("\n", n.Line-1) + strings.Repeat(" ", begin))
	fmt.Fprintln(&text, string(first[begin:]))
	for _, line := range r.lines[n.Line:max(n.Line, end)] {
		fmt.Fprintln(&text, string(line))
	}
	set, err := rules.NewTable(r.kinds...).Parse(r.document, []byte(text.String()))
	if problems := rules.Problems(nil); errors.As(err, &problems) {
		r.problems = append(r.problems, problems...)
	}
	return set
}
