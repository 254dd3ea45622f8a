package command

import (
	"fmt"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// conflictError describes a conflict and says what to do.
func conflictError(c *store.ConflictError) error {
	const advice = "nothing was changed; compare again with penstock diff, then push"
	if c.Compacted {
		return fmt.Errorf("what was written since revision %d cannot be told, etcd has forgotten it: %s", c.Expect, advice)
	}
	who := "somebody else"
	if c.Pushed != nil {
		who = wording.Printable(fmt.Sprintf("%s, with revision %d (%q),", c.Pushed.Author, c.Pushed.Revision, c.Pushed.Message))
	}
	what := "documents"
	if len(c.Documents) > 0 {
		what = wording.Printable(wording.List(c.Documents))
	}
	return fmt.Errorf("%s has written %s since revision %d: %s", who, what, c.Expect, advice)
}
