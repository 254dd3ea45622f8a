package sentinel

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// File is a file of flow rules of Sentinel.
type File struct {
	Name string // as messages call it
	Data []byte
}

// Conversion is what became of the rules in some files.
type Conversion struct {
	// Rules are those that could be carried over, in the order of the files.
	Rules rules.Set

	// Findings are to be told, in the order of the files.
	Findings []Finding

	files []string
}

// Convert turns the rules in the files into one set, in which every rule has a
// name of its own. It fails for no input: what cannot be converted is among the
// findings.
func Convert(files ...File) Conversion {
	var c Conversion
	var converted []carried
	for _, file := range files {
		c.files = append(c.files, file.Name)
		data := bytes.TrimPrefix(file.Data, []byte("\ufeff"))
		of, findings := convertFile(data)
		place(findings, data)
		for i := range findings {
			findings[i].File = file.Name
		}
		converted = append(converted, of...)
		c.Findings = append(c.Findings, findings...)
	}
	c.Rules.Flow = rulesOf(converted)
	nameApart(c.Rules.Flow)
	return c
}

// Has tells whether there are findings of the kind.
func (c Conversion) Has(kind Kind) bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Kind == kind })
}

// carried is a rule that could be carried over.
type carried struct {
	flow.Rule
	resource string // that Sentinel's rule names, be it a pattern
	yields   bool   // to rules that name a resource, see traffic
	offset   int
}

func rulesOf(converted []carried) []flow.Rule {
	list := slices.Grow([]flow.Rule(nil), len(converted))
	for i := range converted {
		list = append(list, converted[i].Rule)
	}
	return list // nil without rules, as that of a document
}

func convertFile(data []byte) (converted []carried, findings []Finding) {
	root, offset, err := parse(data)
	if err != nil {
		return nil, []Finding{{Kind: Unreadable, offset: offset, Message: "the file cannot be read as JSON: " + err.Error()}}
	}
	list, ok := root.value.([]node)
	if !ok {
		return nil, []Finding{{
			Kind: Unreadable, offset: root.offset,
			Message: "the file holds " + root.String() + ": must be a list of flow rules, as the data sources of Sentinel hold it",
		}}
	}
	converted = make([]carried, 0, len(list))
	for _, n := range list {
		o := newObject(n)
		if rule, ok := convertRule(o); ok {
			converted = append(converted, rule)
		}
		findings = append(findings, o.findings...)
	}
	converted, unfit := judgeRules(converted)
	findings = append(findings, unfit...)
	return converted, append(findings, yielding(converted)...)
}

func convertRule(o *object) (rule carried, ok bool) {
	if o.dropped {
		return carried{}, false
	}
	if kind, field := foreign(o); kind != "" {
		o.drop(o.at(field), "it is %s (it has %s), and only flow rules are converted", kind, field)
		return carried{}, false
	}
	if strings.TrimSpace(o.resource) == "" {
		o.drop(o.at("resource"), "the resource is missing: name what the rule guards")
	}
	if !o.has("threshold", "count") {
		o.drop(o.offset, "there is neither a threshold (Go) nor a count (Java): write how many calls may pass, 0 to block all")
		return carried{}, false
	}
	d := dialectOf(o)
	d.judgeFields(o)
	t := d.read(o)
	rule = carried{t.rule(o), o.resource, t.yields, o.offset}
	if !o.dropped {
		t.judge(o)
	}
	return rule, !o.dropped
}
