package lastgood

import (
	"bytes"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// contents are the decoded contents of a copy: the documents of a source that were
// in force.
type contents struct {
	app, source string
	revision    int64         // of the source as a whole
	at          clock.Instant // last time at which the source is known to have had these
	documents   []core.Document
}

// change converts the contents to a change for the engine.
func (c *contents) change() core.Change {
	return core.Change{Complete: true, Documents: c.documents, Revision: c.revision, CopiedAt: c.at}
}

// same reports whether two copies are equal apart from the time.
func (c *contents) same(other *contents) bool {
	return other != nil && c.app == other.app && c.source == other.source && c.revision == other.revision &&
		slices.EqualFunc(c.documents, other.documents, func(a, b core.Document) bool {
			return a.Name == b.Name && a.Revision == b.Revision && a.Created == b.Created && bytes.Equal(a.Data, b.Data)
		})
}

// duplicate returns a name that occurs twice, if there is one.
func duplicate(documents []core.Document) (name string, ok bool) {
	seen := make(map[string]struct{}, len(documents))
	for _, d := range documents {
		if _, ok := seen[d.Name]; ok {
			return d.Name, true
		}
		seen[d.Name] = struct{}{}
	}
	return "", false
}
