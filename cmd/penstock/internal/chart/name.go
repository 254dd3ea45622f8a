package chart

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns a name with whatever could steer a terminal or turn the text
// around replaced.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, name)
}

// clip shortens text to so many characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
