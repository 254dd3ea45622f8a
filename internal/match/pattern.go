package match

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxLength is the length of the longest pattern, in bytes.
const maxLength = 1024

const maxQuoted = 60 // bytes of a pattern in an error

// Pattern is a compiled pattern. It is safe for concurrent use. The zero value
// matches the empty name alone.
type Pattern struct {
	literals                // the prefix is compared first
	whole    bool           // the prefix is all of the name
	open     bool           // whatever follows the prefix matches
	rest     *regexp.Regexp // what follows the prefix, of other patterns
}

// Error is what is wrong with a pattern.
type Error struct {
	Pattern string
	// Position is the character of the pattern that is wrong, the first being 1; 0 when
	// the whole pattern is.
	Position int
	// Message says what is wrong and what to do.
	Message string
}

// Error returns the pattern and what is wrong with it, in one line.
func (e *Error) Error() string { return "match: pattern " + e.Fault() }

// Fault returns what is wrong, where and what to do, in words that go on after
// the name of the field that the pattern stands in.
func (e *Error) Fault() string {
	pattern := e.Pattern
	if len(pattern) > maxQuoted {
		pattern = strings.ToValidUTF8(pattern[:maxQuoted], "") + "…"
	}
	if e.Position == 0 {
		return fmt.Sprintf("%q %s", pattern, e.Message)
	}
	return fmt.Sprintf("%q, character %d: %s", pattern, e.Position, e.Message)
}

// IsPattern says whether a text is to be read as a pattern where a rule may have either
// exact texts or patterns: it begins with "~", or has a character that means something
// in a glob.
func IsPattern(text string) bool {
	return strings.HasPrefix(text, "~") || strings.ContainsAny(text, `*?[\`)
}

// Compile compiles a pattern. The error is an [*Error].
func Compile(pattern string) (Pattern, error) {
	expression, isExpression := strings.CutPrefix(pattern, "~")
	var compiled Pattern
	var fault *Error
	switch {
	case pattern == "":
		fault = &Error{Message: "is empty: write * to match every name"}
	case len(pattern) > maxLength:
		fault = &Error{Message: fmt.Sprintf("has %d bytes: must have at most %d", len(pattern), maxLength)}
	case !utf8.ValidString(pattern):
		fault = &Error{Position: firstInvalid(pattern), Message: "is not UTF-8: write the text in UTF-8"}
	case isExpression:
		compiled, fault = compileExpression(expression)
	default:
		compiled, fault = compileGlob(pattern)
	}
	if fault != nil {
		fault.Pattern = pattern
		return Pattern{}, fault
	}
	return compiled, nil
}

// Matches says whether the name matches the pattern. Bytes of the name that are not UTF-8
// count as one character each.
func (p Pattern) Matches(name string) bool {
	rest, ok := strings.CutPrefix(name, p.prefix)
	switch {
	case !ok:
		return false
	case p.open:
		return true
	case p.whole || p.rest == nil:
		return rest == ""
	}
	return p.rest.MatchString(rest)
}

// firstInvalid returns the position of the first character that is not UTF-8.
func firstInvalid(text string) int {
	position := 1
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			break
		}
		position++
	}
	return position
}
