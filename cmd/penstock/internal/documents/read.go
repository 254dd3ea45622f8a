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
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// stdin is the path that stands for standard input.
const stdin = "-"

// Read reads the documents at the paths and returns them sorted by name. A path is a
// file, a directory or, unless in is nil, "-" for standard input. In a directory, all
// files that end in .yaml, .yml or .json are documents, at any depth, except those
// whose path has a part that begins with a dot. Naming a file twice is an error. Two
// documents may have the same name: see [Distinct].
func Read(ctx context.Context, in io.Reader, paths ...string) ([]Document, error) {
	r := reader{ctx: ctx, in: in}
	return r.read(paths)
}

// ReadFlat is like [Read], but reads only the files that a service reads from a
// directory (datasource/file): those in the directory itself, not below it. It also
// returns the places of files that look like documents but are ignored by a service.
func ReadFlat(ctx context.Context, in io.Reader, paths ...string) (read []Document, ignored []string, err error) {
	r := reader{ctx: ctx, in: in, flat: true}
	read, err = r.read(paths)
	return read, r.ignored, err
}

// reader reads documents.
type reader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	in   io.Reader
	flat bool // read no subdirectories

	ignored []string
}

func (r *reader) read(paths []string) ([]Document, error) {
	var all []Document
	for _, path := range paths {
		documents, err := r.readPath(path)
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

func (r *reader) readPath(path string) ([]Document, error) {
	if path == stdin && r.in != nil {
		data, err := files.ReadInput(r.ctx, r.in)
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
		return r.readDirectory(path)
	}
	data, err := files.Read(r.ctx, path)
	if err != nil {
		return nil, err
	}
	return []Document{{Name: filepath.Base(path), Place: path, Data: data}}, nil
}

func (r *reader) readDirectory(directory string) ([]Document, error) {
	documents, err := r.scan(directory)
	if err == nil && len(documents) == 0 {
		err = fmt.Errorf("%s holds no documents: their names end in %s", directory, strings.Join(extensions(), ", "))
		if len(r.ignored) > 0 {
			err = fmt.Errorf("%w; below it are %s (--recursive reads them)", err, wording.List(r.ignored))
		}
	}
	return documents, err
}

// scan returns the documents in a directory, perhaps none.
func (r *reader) scan(directory string) ([]Document, error) {
	var documents []Document
	below := os.DirFS(directory)
	err := fs.WalkDir(below, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := name != "." && strings.HasPrefix(entry.Name(), ".")
		place := filepath.Join(directory, filepath.FromSlash(name))
		switch {
		case err != nil && r.flat && name != ".":
			r.ignored = append(r.ignored, place)
			return fs.SkipDir
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case hidden || entry.IsDir() && (!r.flat || !IsDocument(name)):
			return nil
		}
		info, err := fs.Stat(below, name) // follows links
		if r.flat && r.ignores(name, place, info) {
			return nil
		}
		switch {
		case err == nil && info.IsDir() && !r.flat:
			// Following it may lead to cycles; ignoring it may silently leave
			// out rules.
			return fmt.Errorf("%s is a link to a directory, which is not followed: name that directory, or begin the link's name with a dot", place)
		case !IsDocument(name):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file (%v): put a file there or remove it", place, info.Mode())
		}
		data, err := files.Read(r.ctx, place)
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

// ignores reports whether a service does not read the file. It records the file if it
// looks like a document, or is a link to a directory. info is nil if the file cannot
// be read.
func (r *reader) ignores(name, place string, info fs.FileInfo) bool {
	if IsDocument(name) && !strings.Contains(name, "/") {
		return false
	}
	if IsDocument(strings.ToLower(name)) || info != nil && info.IsDir() {
		r.ignored = append(r.ignored, place)
	}
	return true
}
