package file

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// format says which files of a directory are documents, and how they are read.
type format struct {
	name       string   // of the source, before its path
	extensions []string // of the files in a directory that are documents
	maxSize    int64    // of a document, in bytes
	tooLong    string   // what to do about a longer one

	// checksumOnly delivers the SHA-256 of a document instead of its bytes, so that no
	// document is held in memory.
	checksumOnly bool
}

// ruleDocuments is the format of rule documents.
func ruleDocuments() format {
	return format{
		name: "file:", extensions: []string{".yaml", ".yml", ".json"}, maxSize: rules.MaxDocumentSize, tooLong: "split the document",
	}
}

// matches reports whether a file of a directory is a document, by its name.
func (f format) matches(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains(f.extensions, filepath.Ext(name))
}
