package document

import (
	"fmt"
	"unicode"
)

// IsInvisible tells characters that can hide in a text or break its lines: controls, separators of lines and
// paragraphs, byte order marks.
func IsInvisible(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r)
}

// Quote returns text in quotes, cut after 60 characters.
func Quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
