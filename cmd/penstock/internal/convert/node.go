package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// maxDepth is how deep lists and objects may be nested. Rules need three levels.
const maxDepth = 20

// The errors of a file that cannot be read, as encoding/json words them.
var (
	errTooDeep = errors.New("lists and objects are nested too deep")
	errNoJSON  = errors.New("it begins with neither [ nor {")
	errEnd     = errors.New("unexpected end of JSON input")
)

// node is a value of a file and the offset at which it begins.
type node struct {
	offset int
	value  any // nil, bool, json.Number, string, []node or []entry
}

// entry is a field of an object.
type entry struct {
	key  node // a string
	node node
}

// String describes the node for messages.
func (n node) String() string {
	switch v := n.value.(type) {
	case nil:
		return "null"
	case string:
		return wording.Quote(v)
	case []node:
		return "a list"
	case []entry:
		return "an object"
	default:
		return fmt.Sprint(v) // a number or a boolean
	}
}

// parse returns the value of a JSON file, or the offset of the first error and the error.
// It takes what the parsers of Sentinel's data sources take: comments, commas after the last
// value, text in single quotes and names of fields without quotes.
func parse(data []byte) (node, int, error) {
	r := reader{data: data}
	begin := r.peek()
	start := r.at
	root, err := r.value(0)
	if err != nil && r.at == start && begin != 0 {
		err = errNoJSON
	}
	if err == nil {
		if r.skip(); r.at < len(r.data) {
			err = r.unexpected()
		}
	}
	return root, r.at, err
}

// reader reads JSON. When it fails, it stands where the error is.
type reader struct {
	data []byte
	at   int
}

// skip skips white space and comments.
func (r *reader) skip() {
	for r.at < len(r.data) {
		rest := r.data[r.at:]
		end := 0
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			r.at++
			continue
		case bytes.HasPrefix(rest, []byte("//")):
			end = bytes.IndexByte(rest, '\n')
		case bytes.HasPrefix(rest, []byte("/*")):
			if end = bytes.Index(rest[2:], []byte("*/")); end >= 0 {
				end += len("/**/")
			}
		default:
			return
		}
		if end < 0 {
			end = len(rest)
		}
		r.at += end
	}
}

// unexpected returns the error of a character that cannot stand here.
func (r *reader) unexpected() error {
	if r.at >= len(r.data) {
		r.at = max(0, len(bytes.TrimRight(r.data, " \t\r\n"))-1) // the last that is there
		return errEnd
	}
	found, _ := utf8.DecodeRune(r.data[r.at:])
	return fmt.Errorf("invalid character %q", found)
}

// peek returns the next character that is no white space, 0 at the end.
func (r *reader) peek() byte {
	if r.skip(); r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *reader) value(depth int) (n node, err error) {
	next := r.peek()
	n.offset = r.at
	switch {
	case next == '[' || next == '{':
		if r.at++; depth == maxDepth {
			return node{}, errTooDeep
		}
		if next == '[' {
			n.value, err = r.list(depth + 1)
		} else {
			n.value, err = r.object(depth + 1)
		}
	case next == '"' || next == '\'':
		n.value, err = r.text(next)
	case next == '-' || next >= '0' && next <= '9':
		n.value, err = r.number()
	default:
		n.value, err = r.literal()
	}
	return n, err
}

func (r *reader) list(depth int) (items []node, err error) {
	items = []node{}
	for {
		if r.peek() == ']' {
			r.at++
			return items, nil
		}
		item, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if err := r.separator(']'); err != nil {
			return nil, err
		}
	}
}

func (r *reader) object(depth int) (entries []entry, err error) {
	entries = []entry{}
	for {
		next := r.peek()
		if next == '}' {
			r.at++
			return entries, nil
		}
		key := node{offset: r.at}
		if next == '"' || next == '\'' {
			key.value, err = r.text(next)
		} else {
			key.value, err = r.bareName()
		}
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, r.unexpected()
		}
		r.at++
		value, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{key, value})
		if err := r.separator('}'); err != nil {
			return nil, err
		}
	}
}

// separator reads the comma after a value, which may also stand before the end.
func (r *reader) separator(end byte) error {
	switch r.peek() {
	case ',':
		r.at++
	case end:
	default:
		return r.unexpected()
	}
	return nil
}

// bareName reads the name of a field without quotes.
func (r *reader) bareName() (string, error) {
	begin := r.at
	for r.at < len(r.data) {
		found, size := utf8.DecodeRune(r.data[r.at:])
		if found != '_' && found != '$' && !unicode.IsLetter(found) && (r.at == begin || !unicode.IsDigit(found)) {
			break
		}
		r.at += size
	}
	if r.at == begin {
		return "", r.unexpected()
	}
	return string(r.data[begin:r.at]), nil
}

// text reads text in quotes.
func (r *reader) text(quote byte) (string, error) {
	begin := r.at
	for r.at++; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '\\':
			r.at++
		case quote:
			r.at++
			return r.unquote(begin, quote)
		case '\n':
			return "", r.unexpected()
		}
	}
	return "", r.unexpected()
}

// unquote returns what text in quotes says.
func (r *reader) unquote(begin int, quote byte) (string, error) {
	written := string(r.data[begin:r.at])
	if quote == '\'' {
		inner := written[1 : len(written)-1]
		written = `"` + strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, `"`, `\"`).Replace(inner) + `"`
	}
	var text string
	if err := json.Unmarshal([]byte(written), &text); err != nil {
		r.at = begin
		return "", err
	}
	return text, nil
}

func (r *reader) number() (json.Number, error) {
	begin := r.at
	for r.at < len(r.data) && bytes.IndexByte([]byte("+-.eE0123456789"), r.data[r.at]) >= 0 {
		r.at++
	}
	written := r.data[begin:r.at]
	if !json.Valid(written) {
		r.at = begin
		return "", fmt.Errorf("%s is no number of JSON", wording.Quote(string(written)))
	}
	return json.Number(written), nil
}

func (r *reader) literal() (any, error) {
	for name, value := range map[string]any{"true": true, "false": false, "null": nil} {
		if bytes.HasPrefix(r.data[r.at:], []byte(name)) {
			r.at += len(name)
			return value, nil
		}
	}
	return nil, r.unexpected()
}
