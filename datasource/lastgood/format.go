package lastgood

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// The file is a line with the format and the checksum, followed by the contents.
const (
	title  = "last good copy of rules"
	format = 1
)

// maxSize is how many bytes a copy may have in its file.
const maxSize = 64 << 20

// headJSON is the first line of a copy.
type headJSON struct {
	Penstock string `json:"penstock"` // title
	Format   int    `json:"format"`
	SHA256   string `json:"sha256"` // of everything after the line, in hexadecimal
}

// contentsJSON is the rest of a copy.
type contentsJSON struct {
	App       text           `json:"app"`
	Source    text           `json:"source"`
	Revision  int64          `json:"revision"`
	CurrentAt time.Time      `json:"currentAt"`
	Documents []documentJSON `json:"documents"`
}

type documentJSON struct {
	Name     text  `json:"name"`
	Revision int64 `json:"revision"`
	Created  int64 `json:"created,omitempty"`
	Data     text  `json:"data"`
}

// text is bytes that are readable in JSON if possible: a string if they are UTF-8,
// else an object with base64.
type text string

type base64JSON struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements [json.Marshaler].
func (t text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(base64JSON{[]byte(t)})
	}
	return marshal(string(t), "")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*string)(t))
	}
	var in base64JSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*t = text(in.Base64)
	return nil
}
