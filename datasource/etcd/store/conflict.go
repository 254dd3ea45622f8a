package store

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConflict matches every [*ConflictError] with errors.Is.
var ErrConflict = errors.New("store: somebody else has written")

// ConflictError says that a push was not made because somebody has written since
// the revision that it expected. Nothing has changed. Pull, review the changes, and
// push again.
type ConflictError struct {
	Expect int64 // Push.Expect

	// Documents are those that were written or deleted since, by name.
	Documents []string

	// Pushed is the latest push since; nil if other tools have written.
	Pushed *Revision

	// Compacted says that etcd no longer has the expected revision, so what was
	// written since is unknown. The other fields are empty.
	Compacted bool
}

// Error implements error.
func (e *ConflictError) Error() string {
	const most = 10 // names in a message
	var what string
	switch n := len(e.Documents); {
	case e.Compacted:
		return fmt.Sprintf("store: revision %d has been compacted, what was written since cannot be told: pull and push again", e.Expect)
	case n == 0:
	case n > most:
		what = fmt.Sprintf(": %s and %d more", strings.Join(e.Documents[:most], ", "), n-most)
	default:
		what = ": " + strings.Join(e.Documents, ", ")
	}
	who := "somebody"
	if e.Pushed != nil {
		who = fmt.Sprintf("a push (revision %d, author %q)", e.Pushed.Revision, e.Pushed.Author)
	}
	return fmt.Sprintf("store: %s has written since revision %d: pull and push again%s", who, e.Expect, what)
}

// Is reports whether the target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
