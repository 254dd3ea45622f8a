package scenario

import (
	"slices"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// place is a line and a column of a document, counted from 1 in characters.
type place struct{ line, column int }

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }

// word is a part of a text on one line, without blanks.
type word struct {
	text string
	at   place
}

// words splits the text of a scalar at its blanks. Words of a text that is escaped
// or folded in the document have the place of the scalar.
func (r *reader) words(n *yaml.Node) []word {
	verbatim := r.verbatim(n)
	text := []rune(n.Value)
	var words []word
	for begin := 0; begin < len(text); begin++ {
		if unicode.IsSpace(text[begin]) {
			continue
		}
		end := begin
		for end < len(text) && !unicode.IsSpace(text[end]) {
			end++
		}
		at := placeOf(n)
		if verbatim {
			at.column += opening(n) + begin
		}
		words = append(words, word{string(text[begin:end]), at})
		begin = end
	}
	return words
}

// verbatim says whether a scalar's text is in the document letter by letter.
func (r *reader) verbatim(n *yaml.Node) bool {
	if n.Line > len(r.lines) || n.Column < 1 {
		return false
	}
	line, text := r.lines[n.Line-1], []rune(n.Value)
	begin := n.Column - 1 + opening(n)
	end := begin + len(text)
	return end <= len(line) && slices.Equal(line[begin:end], text)
}

// opening returns how many characters of a scalar come before its text.
func opening(n *yaml.Node) int {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return 1
	}
	return 0
}
