// Package documents reads, compares and saves the rule documents that the commands
// of penstock work on: in files and directories, on standard input, in etcd.
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
	// Name is the name of the document in etcd: its path below the directory that
	// was read, with slashes, or the name of the file.
	Name string

	// Place is the path of the file, for messages. Empty means the name.
	Place string

	Data []byte
}

func (d Document) place() string { return cmp.Or(d.Place, d.Name) }

// extensions are the file name extensions of documents.
func extensions() []string { return []string{".yaml", ".yml", ".json"} }

// IsDocument reports whether a file in a directory is a document, by its name.
func IsDocument(name string) bool {
	return !strings.HasPrefix(path.Base(name), ".") && slices.Contains(extensions(), path.Ext(name))
}

// Distinct returns an error if two documents have the same name, which is impossible
// in etcd.
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
