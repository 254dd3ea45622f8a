// Package documents holds rule documents as the commands of penstock meet them:
// in files and directories, on standard input, in etcd.
package documents

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Document is one rule document.
type Document struct {
	// Name is what the document is called in etcd: its path below the directory
	// it was found in, with slashes, or the name of the file.
	Name string

	// Place is what the user knows the document by, which messages name: the
	// path of the file. Empty is the same as the name.
	Place string

	Data []byte
}

func (d Document) place() string { return cmp.Or(d.Place, d.Name) }

// endings are those of the files in a directory that are documents.
func endings() []string { return []string{".yaml", ".yml", ".json"} }

// IsDocument tells whether a file in a directory is taken for a document.
func IsDocument(name string) bool {
	return !strings.HasPrefix(path.Base(name), ".") && slices.Contains(endings(), path.Ext(name))
}

// Distinct fails when two documents have one name, as they cannot in etcd.
func Distinct(documents []Document) error {
	places := make(map[string]string, len(documents))
	for _, d := range documents {
		if earlier, taken := places[d.Name]; taken {
			return fmt.Errorf("%s and %s would both be the document %q: rename one, or name the directory above both",
				earlier, d.place(), d.Name)
		}
		places[d.Name] = d.place()
	}
	return nil
}
