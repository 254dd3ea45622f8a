package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// keyed is a mapping whose keys have been judged.
type keyed struct {
	entries  []entry  // those of known names, each once
	meant    []string // the known names that misspelled ones seem to mean
	hidden   bool     // there are keys that cannot be read: they may be of any field
	problems Problems // of the other keys
}

// judgeKeys parts the entries of a mapping whose names are known from those
// whose are not. The path leads to the mapping, as in "warmUp."; it is empty at
// the top. Former names are known, too, but no message advises to use them.
func judgeKeys(m node, path string, known []string, former ...string) keyed {
	var k keyed
	first := make(map[string]place)
	for _, e := range m.entries {
		key := e.key
		earlier, twice := first[key.text]
		switch {
		case key.fault != "":
			k.hidden = true
			k.fail(key, "", "the field's name "+key.fault)
		case key.kind == document.List || key.kind == document.Mapping:
			k.hidden = true
			k.fail(key, "", fmt.Sprintf("the field's name is %v: the fields here are %s", key, strings.Join(known, ", ")))
		case !slices.Contains(known, key.text) && !slices.Contains(former, key.text):
			k.unknown(key, path, known)
		case twice:
			k.fail(key, path+key.text, fmt.Sprintf("is given twice, first on line %d: remove one", earlier.line))
		default:
			first[key.text] = key.place
			k.entries = append(k.entries, e)
		}
	}
	return k
}

func (k *keyed) unknown(key node, path string, known []string) {
	advice := "the fields here are " + strings.Join(known, ", ")
	above, below, dotted := strings.Cut(key.text, ".")
	if dotted && slices.Contains(known, above) {
		advice = fmt.Sprintf("write %s: {%s: …}", above, below)
	} else if meant := rule.Nearest(key.text, known); meant != "" {
		k.meant = append(k.meant, meant)
		advice = fmt.Sprintf("did you mean %q?", path+meant)
	}
	k.fail(key, "", fmt.Sprintf("unknown field %s: %s", rule.Quote(path+key.text), advice))
}

func (k *keyed) fail(key node, field, message string) {
	k.problems = append(k.problems, key.problem(field, message))
}
