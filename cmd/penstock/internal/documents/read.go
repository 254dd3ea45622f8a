package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

// stdin is the path that stands for standard input.
const stdin = "-"

// Read reads the documents at the paths and returns them by name. A path is a
// file, a directory or, unless in is nil, "-" for standard input. Of a directory,
// the files below it that end in .yaml, .yml or .json are documents, at any
// depth; what begins with a dot is passed over. To name a document twice is an
// error. Two documents may have one name: see [Distinct].
func Read(ctx context.Context, in io.Reader, paths ...string) ([]Document, error) {
	var all []Document
	for _, path := range paths {
		documents, err := readPath(ctx, in, path)
		if err != nil {
			return nil, err
		}
		all = append(all, documents...)
	}
	named := make(map[string]bool, len(all))
	for _, d := range all {
		place := filepath.Clean(d.place())
		if named[place] {
			return nil, fmt.Errorf("%s is named twice: leave out one of the paths that lead to it", place)
		}
		named[place] = true
	}
	slices.SortStableFunc(all, func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func readPath(ctx context.Context, in io.Reader, path string) ([]Document, error) {
	if path == stdin && in != nil {
		data, err := files.ReadInput(ctx, in)
		return []Document{{Name: "stdin", Data: data}}, err
	}
	if path == "" {
		return nil, errors.New("a path is empty: is a variable not set?")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readDirectory(ctx, path)
	}
	data, err := files.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	return []Document{{Name: filepath.Base(path), Place: path, Data: data}}, nil
}

func readDirectory(ctx context.Context, directory string) ([]Document, error) {
	documents, err := scan(ctx, directory)
	if err == nil && len(documents) == 0 {
		err = fmt.Errorf("%s holds no documents: their names end in %s", directory, strings.Join(endings(), ", "))
	}
	return documents, err
}

// scan returns the documents below a directory, perhaps none.
func scan(ctx context.Context, directory string) ([]Document, error) {
	var documents []Document
	below := os.DirFS(directory)
	err := fs.WalkDir(below, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden:
			return nil
		}
		place := filepath.Join(directory, filepath.FromSlash(name))
		info, err := fs.Stat(below, name) // of what a link leads to
		switch {
		case err == nil && info.IsDir():
			// To follow it may lead in circles, to pass over it may leave rules
			// out unseen.
			return fmt.Errorf("%s is a link to a directory, which is not followed: name that directory, or begin the link's name with a dot", place)
		case !IsDocument(name):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file", place)
		}
		data, err := files.Read(ctx, place)
		if err != nil {
			return err
		}
		documents = append(documents, Document{Name: name, Place: place, Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", directory, err)
	}
	return documents, nil
}
