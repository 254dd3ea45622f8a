package documents

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable returns text with whatever could steer a terminal or turn the text
// around replaced: names and messages come from others. Tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Count returns a number of things: "1 rule", "2 rules".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// List joins names, ten of them at most: "a, b and 3 more".
func List(names []string) string {
	const most = 10
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
