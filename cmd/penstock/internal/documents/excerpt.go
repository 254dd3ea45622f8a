package documents

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// excerptWidth is the highest number of characters of a line in an excerpt.
const excerptWidth = 120

// excerpt returns a line, and a line with a caret below the column, which counts
// characters from 1. It shortens a long line to the part around the column.
func excerpt(line string, column int) (text, caret string) {
	runes := []rune(line)
	at := max(0, min(column-1, len(runes)))
	begin := max(0, min(at-excerptWidth/2, len(runes)-excerptWidth))
	end := min(len(runes), begin+excerptWidth)
	text, before := string(runes[begin:end]), string(runes[begin:at])
	if begin > 0 {
		text, before = "…"+text, "…"+before
	}
	if end < len(runes) {
		text += "…"
	}
	return strings.TrimRight(wording.Printable(text), " \t"), padding(wording.Printable(before)) + "^"
}

// splitLines returns the lines of a document as [rules.Position] counts them.
func splitLines(data []byte) []string {
	text := strings.TrimPrefix(string(data), "\ufeff")
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// padding returns white space that is as wide on a terminal as the text.
func padding(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteByte('\t') // as wide as the tab above it
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf): // has no width
		case isWide(r):
			b.WriteString("  ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func isWide(r rune) bool {
	kind := width.LookupRune(r).Kind()
	return kind == width.EastAsianWide || kind == width.EastAsianFullwidth
}
