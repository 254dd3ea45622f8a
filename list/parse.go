package list

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// What a text may have.
const (
	MaxEntries = 10_000_000
	MaxText    = 1024    // bytes of an exact text
	MaxLine    = 8192    // bytes of a line, comments included
	MaxSize    = 1 << 30 // bytes of a text

	// MaxMistakes is how many mistakes an [Error] has in full.
	MaxMistakes = 10
)

// Options are what [Parse] may be told. The zero value is a good one.
type Options struct {
	// MaxEntries is the most entries that the list may have. Defaults to [MaxEntries],
	// which is also the most.
	MaxEntries int

	// MaxSize is the most bytes that the text may have. Defaults to [MaxSize], which is
	// also the most.
	MaxSize int64

	// Progress is called now and then while the text is read, at least once every 65,536
	// lines. nil: nobody is interested.
	Progress func(Progress)
}

// Progress is how far [Parse] has come.
type Progress struct {
	Lines   int   // that were read
	Entries int   // among them
	Bytes   int64 // that were read
}

// Mistake is what is wrong with one line of a text.
type Mistake struct {
	Line    int    // the first line is 1
	Message string // what is wrong and what to do
}

// Error is what is wrong with a text.
type Error struct {
	Mistakes []Mistake // the first [MaxMistakes]
	Count    int       // how many there are altogether
}

// Error returns the mistakes in one line.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("list: ")
	for i, m := range e.Mistakes {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "line %d: %s", m.Line, m.Message)
	}
	if more := e.Count - len(e.Mistakes); more > 0 {
		fmt.Fprintf(&text, "; and %d more mistakes", more)
	}
	return text.String()
}

// Parse reads the text of a list from its start to its end, as the package comment
// describes it. An error is an [*Error], that of the reader, or that of the context,
// which is looked at every few thousand lines. There is either a list or an error.
func Parse(ctx context.Context, r io.Reader, _ Options) (*List, error) {
	var b Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		entry := strings.TrimSpace(lines.Text())
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		if p, err := netip.ParsePrefix(entry); err == nil {
			b.AddPrefix(p)
		} else {
			b.AddText(entry)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return b.Build(ctx)
}
