package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// reader reads one document and gathers every mistake in it.
type reader struct {
	document string
	lines    [][]rune
	kinds    []rule.Definition // beside those that come with Penstock
	problems rules.Problems
}

// open returns a reader and the root of the document, which is nil when the
// syntax is wrong.
func open(document string, data []byte) (*reader, *yaml.Node) {
	r := &reader{document: document}
	if len(data) > rules.MaxDocumentSize {
		r.fail(place{1, 1}, "", "the document is %d bytes long: the most is %d", len(data), rules.MaxDocumentSize)
		return r, nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	// The parser counts lines by these.
	breaks := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
	for line := range strings.SplitSeq(breaks.Replace(string(data)), "\n") {
		r.lines = append(r.lines, []rune(line))
	}
	var root yaml.Node
	if err := yaml.Load(data, &root); err != nil {
		r.syntax(err)
		return r, nil
	}
	return r, root.Content[0]
}

// syntax records an error of the YAML parser.
func (r *reader) syntax(err error) {
	at, message := place{1, 1}, err.Error()
	if load := new(yaml.LoadError); errors.As(err, &load) {
		at = place{load.Mark.Line, load.Mark.Column}
		message = strings.TrimPrefix(load.Message, "yaml: ")
		if load.ContextMsg != "" {
			message += fmt.Sprintf(" (%s that begins on line %d)", load.ContextMsg, max(1, load.ContextMark.Line))
		}
	}
	if strings.HasSuffix(message, "no documents in stream") {
		r.fail(at, "", "the document is empty")
		return
	}
	r.fail(at, "", "the document cannot be read as YAML: %s", message)
}

// fail records a mistake. With a field, the message reads on from its name. Both may have names that
// the document chooses, as of attributes.
// Where something is missing at the end, the parser sees a line that is not
// there.
func (r *reader) fail(at place, field, format string, args ...any) {
	if last := len(r.lines); at.line > last && last > 0 {
		at = place{last, len(r.lines[last-1]) + 1}
	}
	at = place{max(1, at.line), max(1, at.column)}
	r.problems = append(r.problems, rules.Problem{
		Document: r.document, Line: at.line, Column: at.column,
		Field: wording.Printable(field), Message: wording.Printable(fmt.Sprintf(format, args...)),
	})
}
