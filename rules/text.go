package rules

import (
	"fmt"
	"unicode/utf8"

	"github.com/penstock-go/penstock/internal/document"
)

// checkText finds the first character that no document may have. What is left
// is text on whose lines and columns YAML, JSON and editors agree.
func checkText(data []byte) Problems {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return Problems{placeOf(data, i).problem("", fmt.Sprintf(
				"the document is not UTF-8: there is a byte 0x%02x here; save it as UTF-8", data[i]))}
		case document.IsInvisible(r) && r != '\t' && r != '\n' && r != '\r':
			return Problems{placeOf(data, i).problem("", fmt.Sprintf(
				"the document has a character %U here, which cannot be seen: remove it", r))}
		}
		i += size
	}
	return nil
}

// placeOf returns the place of the character at the offset.
func placeOf(data []byte, offset int) place {
	c := newCursor(data)
	return c.to(offset)
}

// cursor walks a text and tells the places of ever larger offsets, all of them
// in the time of one pass.
type cursor struct {
	data   []byte
	offset int
	at     place
}

func newCursor(data []byte) cursor { return cursor{data: data, at: place{1, 1}} }

// to moves the cursor to the offset, which is not before the one it stands at.
// A line ends with LF, CR or both.
func (c *cursor) to(offset int) place {
	for c.offset < offset {
		r, size := utf8.DecodeRune(c.data[c.offset:])
		c.offset += size
		crlf := r == '\r' && c.offset < len(c.data) && c.data[c.offset] == '\n'
		if (r == '\n' || r == '\r') && !crlf {
			c.at = place{c.at.line + 1, 1}
		} else {
			c.at.column++
		}
	}
	return c.at
}
