package lastgood

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// decode parses and checks a copy.
func decode(data []byte) (*contents, error) {
	first, body, _ := bytes.Cut(data, []byte("\n"))
	if !bytes.Equal(data, append(headLine(body), body...)) {
		return nil, headError(first)
	}
	var j contentsJSON
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return nil, fmt.Errorf("it is whole but no program wrote it like that: %w", err)
	}
	c := &contents{
		app: string(j.App), source: string(j.Source), revision: j.Revision, at: clock.Instant(j.CurrentAt.UnixNano()),
	}
	if c.at <= 0 || !c.at.Time().Equal(j.CurrentAt) {
		return nil, fmt.Errorf("it is whole but cannot be of %v", j.CurrentAt)
	}
	for _, d := range j.Documents {
		c.documents = append(c.documents, core.Document{
			Name: string(d.Name), Revision: d.Revision, Created: d.Created, Data: []byte(d.Data),
		})
	}
	if name, ok := duplicate(c.documents); ok {
		return nil, fmt.Errorf("it is whole but has %q twice", name)
	}
	return c, nil
}

// headError returns the error for a copy whose first line does not match its body.
func headError(first []byte) error {
	var h headJSON
	switch err := json.Unmarshal(first, &h); {
	case err != nil || h.Penstock != title || h.Format < 1:
		return errors.New("it is no copy of rules, or was cut off or changed at its beginning")
	case h.Format > format:
		return fmt.Errorf("it has format %d and this program reads %d: a later version wrote it", h.Format, format)
	default:
		return errors.New("its checksum does not match: it was cut off or changed since it was written")
	}
}
