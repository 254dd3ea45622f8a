// Package wording formats numbers, names and untrusted text for messages.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Printable replaces characters that control a terminal, change the direction of text
// or begin another line, because names and messages may come from others. It keeps
// tabs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) && r != '\t' || r == '\ufeff' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Cell returns text for one cell of a table: printable, without tabs and repeated
// spaces.
func Cell(text string) string { return Printable(strings.Join(strings.Fields(text), " ")) }

// Quote returns text in quotes, truncated to 60 characters.
func Quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// Count returns a number with a noun: "1 rule", "2 rules".
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// List joins at most ten names: "a, b and 3 more".
func List(names []string) string {
	const most = 10
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
