package scenario

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

// field is one field of a mapping and what takes its value over.
type field struct {
	name string
	read func(*yaml.Node)
}

// given are the fields of a mapping, misspelled ones included, by name or path.
type given map[string]givenField

type givenField struct {
	at  place
	bad bool // it could not be read
}

// add notes the fields of a mapping that is at a path of another one.
func (g given) add(path string, n *yaml.Node, fields given) {
	bad := fields == nil
	for name, f := range fields {
		g[path+"."+name] = f
		bad = bad || f.bad
	}
	g[path] = givenField{placeOf(n), bad}
}

// find returns the field at a path such as "phases[1].until" or, when it is not
// there, the nearest one around it.
func (g given) find(path string) (f givenField, ok bool) {
	for path != "" {
		if f, ok = g[path]; ok {
			return f, true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return givenField{}, false
}

// mapping reads the fields of a mapping, in any order. It reports those that it
// does not know and those that are given twice.
func (r *reader) mapping(n *yaml.Node, what string, fields ...field) given {
	if n.Kind != yaml.MappingNode {
		r.fail(placeOf(n), "", "%s is %s: must be a mapping of %s", what, describe(n), names(fields))
		return nil
	}
	found, meant := make(given), make(given)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		known := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		before := len(r.problems)
		switch _, twice := found[key.Value]; {
		case known < 0 || key.Kind != yaml.ScalarNode:
			meant[r.unknown(placeOf(key), "field", key.Value, names(fields))] = givenField{placeOf(key), true}
			continue
		case twice:
			r.fail(placeOf(key), key.Value, "is given twice: remove one")
			continue
		case value.Kind == yaml.AliasNode || value.Anchor != "" && value.Kind == yaml.ScalarNode:
			r.fail(placeOf(value), key.Value, "has an anchor or is an alias, which is not supported: write the value out")
		default:
			fields[known].read(value)
		}
		found[key.Value] = givenField{placeOf(value), len(r.problems) > before}
	}
	maps.Copy(meant, found) // what was misspelled is not missing
	return meant
}

// unknown reports a name that is none of the known ones, and returns the one that
// it seems to mean.
func (r *reader) unknown(at place, kind, name string, known nameList) string {
	advice := "those here are " + known.String()
	meant := rule.Nearest(name, known)
	if meant != "" {
		advice = "did you mean " + wording.Quote(meant) + "?"
	}
	r.fail(at, "", "unknown %s %s: %s", kind, wording.Quote(name), advice)
	return meant
}

type nameList []string

func names(fields []field) nameList {
	var list nameList
	for _, f := range fields {
		list = append(list, f.name)
	}
	return list
}

func (l nameList) String() string { return strings.Join(l, ", ") }
