// Package wording puts numbers, names and the texts of others into messages.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Printable returns text with whatever could steer a terminal, turn the text
// around or begin another line replaced: names and messages come from others.
// Tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) && r != '\t' || r == '\ufeff' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Cell returns text that stands in one cell of a table: printable, and without
// tabs and blanks in a row.
func Cell(text string) string { return Printable(strings.Join(strings.Fields(text), " ")) }

// Quote returns text in quotes, cut to what a message can bear.
func Quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
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
