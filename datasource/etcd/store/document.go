package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/datasource/etcd"
)

// MaxName is how many bytes the name of a document may have.
const MaxName = 512

// Document is a rule document.
type Document struct {
	// Name is the part of the key below the prefix. A push accepts names that are
	// like paths: UTF-8 of at most [MaxName] bytes, without control characters,
	// and with no part between slashes that is empty, "." or "..".
	Name string

	// Data is the document, YAML or JSON, of at most [etcd.MaxDocumentSize]
	// bytes. The store does not parse it.
	Data []byte
}

// check returns an error if the document cannot be pushed.
func (d Document) check() error {
	parts := strings.Split(d.Name, "/")
	odd := func(part string) bool { return part == "" || part == "." || part == ".." }
	switch {
	case len(d.Name) > MaxName:
		return fmt.Errorf("store: the name %.40q… has %d bytes: shorten it to %d", d.Name, len(d.Name), MaxName)
	case slices.ContainsFunc(parts, odd):
		return fmt.Errorf("store: the name %q has a part that is empty, \".\" or \"..\": name it like a file below a folder", d.Name)
	case !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, unicode.IsControl):
		return fmt.Errorf("store: the name %q has control characters or is not UTF-8: leave them out", d.Name)
	case len(d.Data) > etcd.MaxDocumentSize:
		return fmt.Errorf("store: document %q has %d bytes, at most %d are read: split it", d.Name, len(d.Data), etcd.MaxDocumentSize)
	default:
		return nil
	}
}

// sorted returns the documents sorted by name, or all their mistakes.
func sorted(documents []Document) ([]Document, error) {
	documents = slices.SortedStableFunc(slices.Values(documents), func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
	var faults []error
	for i, d := range documents {
		faults = append(faults, d.check())
		if i > 0 && d.Name == documents[i-1].Name {
			faults = append(faults, fmt.Errorf("store: the name %q is given twice: leave one out", d.Name))
		}
	}
	return documents, errors.Join(faults...)
}
