package lastgood

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// encode returns the bytes of the copy. It returns an error if they are too many.
func encode(c *contents) ([]byte, error) {
	size := 0
	for _, d := range c.documents {
		size += len(d.Data)
	}
	if size > maxSize { // before memory is spent on encoding
		return nil, tooLarge(size)
	}
	j := contentsJSON{
		App: text(c.app), Source: text(c.source), Revision: c.revision, CurrentAt: c.at.Time(),
		Documents: make([]documentJSON, len(c.documents)),
	}
	for i, d := range c.documents {
		j.Documents[i] = documentJSON{Name: text(d.Name), Revision: d.Revision, Created: d.Created, Data: text(d.Data)}
	}
	body, err := marshal(j, " ")
	if err != nil {
		return nil, fmt.Errorf("lastgood: encoding the copy: %w", err)
	}
	data := append(headLine(body), body...)
	if len(data) > maxSize {
		return nil, tooLarge(len(data))
	}
	return data, nil
}

func tooLarge(size int) error {
	return fmt.Errorf("lastgood: the copy would have %d bytes, at most %d are kept: the one before stays", size, maxSize)
}

// headLine returns the first line of a copy with the body.
func headLine(body []byte) []byte {
	sum := sha256.Sum256(body)
	line, _ := marshal(headJSON{Penstock: title, Format: format, SHA256: hex.EncodeToString(sum[:])}, "")
	return line
}

// marshal encodes the value as JSON with a final newline.
func marshal(value any, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // keeps angle brackets readable
	encoder.SetIndent("", indent)
	err := encoder.Encode(value)
	return b.Bytes(), err
}
