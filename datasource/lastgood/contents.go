package lastgood

import (
	"bytes"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// contents are what a copy tells: the documents of a source that were in force.
type contents struct {
	app, source string
	revision    int64         // of the source as a whole
	at          clock.Instant // until which it is known that the source held this
	documents   []core.Document
}

// change returns the contents as an engine takes them.
func (c *contents) change() core.Change {
	return core.Change{Complete: true, Documents: c.documents, Revision: c.revision, CopiedAt: c.at}
}

// same says whether two copies tell the same, but for the time.
func (c *contents) same(other *contents) bool {
	return other != nil && c.app == other.app && c.source == other.source && c.revision == other.revision &&
		slices.EqualFunc(c.documents, other.documents, func(a, b core.Document) bool {
			return a.Name == b.Name && a.Revision == b.Revision && a.Created == b.Created && bytes.Equal(a.Data, b.Data)
		})
}

// twice returns a name that two documents have, if there is one.
func twice(documents []core.Document) (name string, ok bool) {
	seen := make(map[string]struct{}, len(documents))
	for _, d := range documents {
		if _, ok := seen[d.Name]; ok {
			return d.Name, true
		}
		seen[d.Name] = struct{}{}
	}
	return "", false
}
