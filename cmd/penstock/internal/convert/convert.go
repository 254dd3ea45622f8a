package convert

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// File is a file of rules of Sentinel.
type File struct {
	Name string // for messages
	Data []byte
}

// Conversion is the result of converting files.
type Conversion struct {
	// Rules are the converted rules, in the order of the files.
	Rules rules.Set

	// Findings report what was left out and what will behave differently, in the order
	// of the files.
	Findings []Finding

	files  []string
	others bool // there are files that are not of Sentinel
}

// Convert converts the rules in the files into one set. The names of the rules are
// unique within their kind. It does not fail: what cannot be converted is among the
// findings.
func Convert(files ...File) Conversion {
	var c Conversion
	var all batch
	for _, file := range files {
		c.files = append(c.files, file.Name)
		switch entries := configMaps(file); {
		case isArchive(file.Data):
			c.convertArchive(file, &all)
		case entries != nil:
			c.convertEntries(entries, &all)
		default:
			c.convertFile(file, &all)
		}
	}
	c.Rules = all.rules()
	nameUniquely(&c.Rules)
	return c
}

// convertFile adds what a file is converted to.
func (c *Conversion) convertFile(file File, all *batch) {
	data := bytes.TrimPrefix(file.Data, []byte("\ufeff"))
	from := originOf(data)
	converted, findings := convertFile(from, data)
	c.others = c.others || from != fromSentinel
	locate(findings, data)
	for i := range findings {
		findings[i].File = file.Name
	}
	all.add(converted)
	c.Findings = append(c.Findings, findings...)
}

// Has reports whether there are findings of the kind.
func (c Conversion) Has(kind Kind) bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Kind == kind })
}

// convertSentinel converts a file of rules of Sentinel.
func convertSentinel(data []byte) (converted batch, findings []Finding) {
	root, offset, err := parse(data)
	if err != nil {
		return batch{}, []Finding{{Kind: Unreadable, offset: offset, Message: "the file cannot be read as JSON: " + err.Error()}}
	}
	list, ok := gather(root, 0)
	if !ok {
		return batch{}, []Finding{{
			Kind: Unreadable, offset: root.offset,
			Message: "the file holds " + root.String() + ": must be a list of rules, as the data sources of Sentinel hold it",
		}}
	}
	objects := make([]*object, len(list))
	for i, n := range list {
		objects[i] = newObject(n)
	}
	others := judge(objects)
	for _, o := range objects {
		convertRule(o, others, &converted)
		findings = append(findings, o.findings...)
	}
	return converted, findings
}

// convertRule adds the converted rule to the batch, unless it is left out.
func convertRule(o *object, others usual, to *batch) {
	if o.dropped || o.isSwitchedOff() {
		return
	}
	if isSystem(o) {
		f := systemFormatOf(o)
		f.reportUnknownFields(o)
		f.convert(o, to)
		return
	}
	if strings.TrimSpace(o.resource) == "" {
		o.drop(o.at("resource"), "the resource is missing: name what the rule guards")
	}
	if o.whole("tokenCalculateStrategy", 0) == 2 && !o.has("threshold", "count") { // which has no effect on such a rule
		dropMemoryAdaptive(o)
		return
	}
	if !o.has("threshold", "count") && !isAuthority(o) {
		o.drop(o.offset, "there is neither a threshold (Go) nor a count (Java): write how many calls may pass, 0 to block all")
		return
	}
	f := others.formatOf(o)
	f.reportUnknownFields(o)
	if limit := f.limit; limit != "" && !o.has(limit) {
		o.drop(o.offset, "%s of %s have their limit in %s, which is missing: write it, or remove what makes it look like such a rule",
			f.kind, f.name, limit)
		return
	}
	f.convert(o, to)
}
