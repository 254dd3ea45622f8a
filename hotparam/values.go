package hotparam

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// values are the entries of [Rule.Values]: those that name one value, and patterns. They
// never change.
type values struct {
	texts    map[string]int // entries by their value
	numbers  map[int64]int
	booleans map[bool]int
	exact    []float64 // limits of these entries

	patterns []valuePattern // in order; composite values without a pattern in them come first
}

// valuePattern is an entry for all values that match.
type valuePattern struct {
	parts []partPattern // one, or one for each part of a composite value
	limit float64
}

// partPattern is a pattern of a value or of a part of one.
type partPattern struct {
	pattern match.Pattern
	literal string // the pattern as written
	any     bool   // it matches all values, numbers and booleans too
}

// exactOf returns the entry that names a value; -1 if none does.
func (v *values) exactOf(value rule.Attribute) int {
	entry, found := -1, false
	if text, ok := value.Text(); ok {
		entry, found = lookUp(v.texts, text)
	} else if number, ok := value.Number(); ok {
		entry, found = lookUp(v.numbers, number)
	} else if truth, ok := value.Boolean(); ok {
		entry, found = lookUp(v.booleans, truth)
	}
	if !found {
		return -1
	}
	return entry
}

// named yields the values that entries name, and the entries.
func (v *values) named(yield func(rule.Attribute, int) bool) {
	for text, entry := range v.texts {
		if !yield(rule.String(text), entry) {
			return
		}
	}
	for number, entry := range v.numbers {
		if !yield(rule.Int(number), entry) {
			return
		}
	}
	for truth, entry := range v.booleans {
		if !yield(rule.Bool(truth), entry) {
			return
		}
	}
}

func lookUp[K comparable](entries map[K]int, key K) (int, bool) {
	if len(entries) == 0 {
		return 0, false
	}
	entry, found := entries[key]
	return entry, found
}

// patternOf returns the first pattern that matches a value; -1 if none does.
func (v *values) patternOf(value rule.Attribute) int {
	for i := range v.patterns {
		if v.patterns[i].matches(value) {
			return i
		}
	}
	return -1
}

// globs is 1 if one of the parts is a pattern, 0 if all of them are written out.
func (p *valuePattern) globs() int {
	for _, part := range p.parts {
		if match.IsPattern(strings.ReplaceAll(part.literal, `\/`, "/")) {
			return 1
		}
	}
	return 0
}

func (p *valuePattern) matches(value rule.Attribute) bool {
	parts := value.Parts()
	if len(parts) == 0 {
		text, ok := value.Text()
		return ok && p.parts[0].pattern.Matches(text)
	}
	if len(parts) != len(p.parts) {
		return false
	}
	for i, part := range parts {
		if !p.parts[i].matchesPart(part) {
			return false
		}
	}
	return true
}

// matchesPart says whether a part of a composite value matches. Numbers and booleans
// match if they are written like the pattern, or if that is for all values.
func (p *partPattern) matchesPart(part rule.Attribute) bool {
	if text, ok := part.Text(); ok {
		return p.pattern.Matches(text)
	}
	if p.any {
		return true
	}
	if number, ok := part.Number(); ok {
		written, err := strconv.ParseInt(p.literal, 10, 64)
		return err == nil && written == number
	}
	truth, ok := part.Boolean()
	return ok && p.literal == strconv.FormatBool(truth)
}

// parseValues reads the entries of a rule and returns what is wrong with them.
func parseValues(r *Rule) (v *values, faults []string) {
	v = &values{texts: make(map[string]int), numbers: make(map[int64]int), booleans: make(map[bool]int)}
	for entry := range r.Values.All() {
		if fault := r.limitFault(entry.Value); fault != "" {
			faults = append(faults, fmt.Sprintf("gives %s the limit %v: %s", settings.WrittenKey(entry.Key), entry.Value, fault))
		}
		if fault := v.add(r, entry.Key, entry.Value); fault != "" {
			faults = append(faults, fmt.Sprintf("has a key %s that %s", settings.WrittenKey(entry.Key), fault))
		}
	}
	slices.SortStableFunc(v.patterns, func(p, q valuePattern) int { return cmp.Compare(p.globs(), q.globs()) })
	if n := len(v.patterns); n > maxPatterns {
		what := "patterns"
		if r.Param.Len() > 1 {
			what = "keys of composite values"
		}
		faults = append(faults, fmt.Sprintf("has %d %s: must have at most %d", n, what, maxPatterns))
	}
	return v, faults
}

// add adds an entry and returns what is wrong with its key.
func (v *values) add(r *Rule, key rule.Attribute, limit float64) (fault string) {
	if r.Param.Len() > 1 {
		return v.addComposite(r.Param.Len(), key, limit)
	}
	if text, isText := key.Text(); isText {
		if match.IsPattern(text) {
			return v.addPattern([]string{text}, limit)
		}
		return addExact(v, v.texts, text, limit)
	}
	if number, isNumber := key.Number(); isNumber {
		return addExact(v, v.numbers, number, limit)
	}
	if truth, isBoolean := key.Boolean(); isBoolean {
		return addExact(v, v.booleans, truth, limit)
	}
	return "is no value: write a text, a whole number, true or false"
}

// addComposite adds an entry for composite values: a pattern for each part.
func (v *values) addComposite(count int, key rule.Attribute, limit float64) (fault string) {
	text, isText := key.Text()
	parts := splitParts(text)
	if !isText || len(parts) != count {
		return fmt.Sprintf(`must have %d parts with a / between them, one for each key of param, as in "a/*"`, count)
	}
	return v.addPattern(parts, limit)
}

func addExact[K comparable](v *values, entries map[K]int, key K, limit float64) (fault string) {
	if _, taken := entries[key]; taken {
		return "stands there twice: remove one"
	}
	entries[key] = len(v.exact)
	v.exact = append(v.exact, limit)
	return ""
}

func (v *values) addPattern(parts []string, limit float64) (fault string) {
	p := valuePattern{limit: limit}
	for _, part := range parts {
		compiled, err := match.Compile(part)
		if err != nil {
			return err.(*match.Error).Fault() //nolint:errorlint // Compile returns nothing else
		}
		p.parts = append(p.parts, partPattern{compiled, part, strings.Trim(part, "*") == ""})
	}
	v.patterns = append(v.patterns, p)
	return ""
}

// splitParts splits the key of a composite value at its slashes. A backslash keeps the
// slash behind it in its part.
func splitParts(key string) (parts []string) {
	start := 0
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '/':
			parts = append(parts, key[start:i])
			start = i + 1
		}
	}
	return append(parts, key[start:])
}
