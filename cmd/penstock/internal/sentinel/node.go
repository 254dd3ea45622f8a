package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// maxDepth is how deep lists and objects may be nested. Rules need three levels.
const maxDepth = 20

// errTooDeep is the error for a file that is nested deeper than maxDepth.
var errTooDeep = errors.New("lists and objects are nested too deep")

// node is a value of a JSON file and the offset at which it begins.
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

// parse returns the value of a JSON file, or the offset of the first error and the
// error.
func parse(data []byte) (node, int, error) {
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		offset := 0
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			read := int(syntax.Offset) - 1 // before the offending byte, or white space at the end
			offset = max(0, min(read, len(bytes.TrimRight(data, " \t\r\n"))))
		}
		return node{}, offset, err
	}
	r := reader{decoder: json.NewDecoder(bytes.NewReader(data)), data: data}
	r.decoder.UseNumber()
	root, err := r.read(0)
	return root, int(r.decoder.InputOffset()), err
}

// reader reads JSON that is known to be valid.
type reader struct {
	decoder *json.Decoder
	data    []byte
}

func (r *reader) read(depth int) (node, error) {
	n := node{offset: r.next()}
	token, err := r.decoder.Token()
	if err != nil {
		return node{}, err
	}
	bracket, nested := token.(json.Delim)
	switch {
	case !nested:
		n.value = token
		return n, nil
	case depth == maxDepth:
		return node{}, errTooDeep
	case bracket == '[':
		n.value, err = r.list(depth + 1)
	default:
		n.value, err = r.object(depth + 1)
	}
	if err != nil {
		return node{}, err
	}
	_, err = r.decoder.Token() // the closing bracket
	return n, err
}

func (r *reader) list(depth int) ([]node, error) {
	items := []node{}
	for r.decoder.More() {
		item, err := r.read(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (r *reader) object(depth int) ([]entry, error) {
	entries := []entry{}
	for r.decoder.More() {
		key, err := r.read(depth)
		if err != nil {
			return nil, err
		}
		value, err := r.read(depth)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{key, value})
	}
	return entries, nil
}

// next returns the offset of the next token.
func (r *reader) next() int {
	offset := int(r.decoder.InputOffset())
	for offset < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[offset]) >= 0 {
		offset++
	}
	return offset
}
