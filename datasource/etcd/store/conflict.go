package store

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConflict is what a [*ConflictError] is.
var ErrConflict = errors.New("store: somebody else has written")

// ConflictError says that a push was not made because somebody has written since
// the revision that it expected. Nothing has changed. Pull, look at what is new,
// and push again.
type ConflictError struct {
	Expect int64 // as in the push

	// Documents are those that were written or deleted since, by name.
	Documents []string

	// Pushed is the latest push since; nil when it was done with other tools.
	Pushed *Revision

	// Compacted says that etcd no longer knows the expected revision, so that
	// what was written since cannot be told; the other fields are empty.
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

// Is says that it is an [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
