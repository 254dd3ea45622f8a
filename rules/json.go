package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/penstock-go/penstock/internal/document"
)

// checkJSON returns what is wrong with the syntax of a JSON document.
func checkJSON(data []byte) Problems {
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if err == nil {
		return nil
	}
	at := place{1, 1}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		read := int(syntax.Offset) - 1 // before the offending byte, or white space at the end
		at = placeOf(data, min(read, len(bytes.TrimRight(data, blank))))
	}
	return Problems{notJSON(at, err)}
}

// notJSON returns the error of a document that is not JSON as a problem.
func notJSON(at place, err error) Problem {
	return at.problem("", "the document cannot be read as JSON: "+err.Error())
}

// readJSON returns the tree of a document that is valid JSON.
func readJSON(data []byte) (node, Problems) {
	r := jsonReader{decoder: json.NewDecoder(bytes.NewReader(data)), cursor: newCursor(data)}
	r.decoder.UseNumber()
	root, err := r.value(0)
	if err != nil {
		return node{}, Problems{notJSON(r.cursor.at, err)}
	}
	return root, nil
}

type jsonReader struct {
	decoder *json.Decoder
	cursor  cursor
}

func (r *jsonReader) value(depth int) (node, error) {
	n := node{place: r.next()}
	token, err := r.decoder.Token()
	if err != nil {
		return node{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		if depth++; depth > maxDepth {
			return node{}, errTooDeep
		}
		if token == '[' {
			return r.list(n, depth)
		}
		return r.mapping(n, depth)
	case string:
		n.kind, n.text = document.Text, token
	case json.Number:
		n.kind, n.text = document.Number, token.String()
	case bool:
		n.kind, n.text = document.Boolean, strconv.FormatBool(token)
	case nil:
		n.kind = document.Null
	}
	return n, nil
}

func (r *jsonReader) list(n node, depth int) (node, error) {
	n.kind = document.List
	for r.decoder.More() {
		item, err := r.value(depth)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	_, err := r.decoder.Token() // the closing bracket
	return n, err
}

func (r *jsonReader) mapping(n node, depth int) (node, error) {
	n.kind = document.Mapping
	for r.decoder.More() {
		key, err := r.value(depth)
		if err != nil {
			return node{}, err
		}
		value, err := r.value(depth)
		if err != nil {
			return node{}, err
		}
		n.entries = append(n.entries, entry{key, value})
	}
	_, err := r.decoder.Token() // the closing brace
	return n, err
}

// next returns the place of the token to come.
func (r *jsonReader) next() place {
	offset := int(r.decoder.InputOffset())
	for offset < len(r.cursor.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.cursor.data[offset]) >= 0 {
		offset++
	}
	return r.cursor.to(offset)
}
