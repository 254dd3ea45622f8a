package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/penstock-go/penstock/rules"
)

// Save writes the documents to a directory, removes all other documents from it, and
// returns the changes. If that would lose a document, it changes nothing and returns
// an [UnsavedError], unless overwrite is set. It never writes outside the directory,
// whatever the names of documents and the targets of links are. Each file is replaced
// atomically.
func Save(ctx context.Context, directory string, documents []Document, overwrite bool) ([]DocumentChange, error) {
	for _, d := range documents {
		if !fs.ValidPath(d.Name) || d.Name == "." || !filepath.IsLocal(filepath.FromSlash(d.Name)) {
			return nil, fmt.Errorf("the name of the document %q is no path below a directory: nothing was written", d.Name)
		}
	}
	if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // rules are there to be read
		return nil, err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	there, err := find(ctx, root, directory, documents)
	if err != nil {
		return nil, err
	}
	changes := compareDocuments(there, documents)
	if err := unsaved(directory, changes); err != nil && !overwrite {
		return nil, err
	}
	return changes, apply(root, changes, documents)
}

// find returns the documents in the directory, and other files with the names of
// documents to save.
func find(ctx context.Context, root *os.Root, directory string, documents []Document) ([]Document, error) {
	there, err := (&reader{ctx: ctx}).scan(directory)
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool, len(there))
	for _, d := range there {
		found[d.Name] = true
	}
	for _, d := range documents {
		if found[d.Name] {
			continue
		}
		name := filepath.FromSlash(d.Name)
		if info, err := root.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a file: move it away", filepath.Join(directory, name))
		}
		data, err := root.ReadFile(name)
		switch {
		case err == nil:
			there = append(there, Document{Name: d.Name, Data: data})
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return there, nil
}

func apply(root *os.Root, changes []DocumentChange, documents []Document) error {
	data := make(map[string][]byte, len(documents))
	for _, d := range documents {
		data[d.Name] = d.Data
	}
	for _, c := range changes {
		if c.Change == rules.Removed {
			if err := root.Remove(filepath.FromSlash(c.Name)); err != nil {
				return err
			}
			continue
		}
		if err := replace(root, c.Name, data[c.Name]); err != nil {
			return fmt.Errorf("writing %s: %w", c.Name, err)
		}
	}
	return nil
}

// replace writes a temporary file and renames it, so that nobody reads a partial file.
func replace(root *os.Root, name string, data []byte) error {
	directory, base := path.Split(name)
	if directory != "" {
		if err := root.MkdirAll(filepath.FromSlash(path.Clean(directory)), 0o755); err != nil {
			return err
		}
	}
	unfinished := filepath.FromSlash(directory + "." + base + ".unfinished")
	file, err := root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(unfinished, filepath.FromSlash(name))
	}
	if err != nil {
		_ = root.Remove(unfinished)
	}
	return err
}
