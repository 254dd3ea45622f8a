package documents

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
)

// UnsavedError lists the documents in a directory that [Save] would lose.
type UnsavedError struct {
	Directory string
	Changed   []string // names of documents with other content
	Others    []string // names of documents that are not to be saved
}

func (e *UnsavedError) Error() string {
	var parts []string
	if len(e.Changed) > 0 {
		parts = append(parts, "other versions of "+wording.List(e.Changed))
	}
	if len(e.Others) > 0 {
		parts = append(parts, "documents that are not in etcd: "+wording.List(e.Others))
	}
	return fmt.Sprintf("%s holds %s", e.Directory, strings.Join(parts, "; and "))
}

// unsaved returns an [UnsavedError] if the changes would lose documents.
func unsaved(directory string, changes []DocumentChange) error {
	e := &UnsavedError{Directory: directory}
	for _, c := range changes {
		switch c.Change {
		case rules.Changed:
			e.Changed = append(e.Changed, c.Name)
		case rules.Removed:
			e.Others = append(e.Others, c.Name)
		}
	}
	if len(e.Changed) == 0 && len(e.Others) == 0 {
		return nil
	}
	return e
}
