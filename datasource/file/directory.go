package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// listBatch is how many directory entries are read at a time.
const listBatch = 1000

// paths returns the paths of the documents by name, by the names of files alone.
func (s *source) paths(self fs.FileInfo) (map[string]string, error) {
	switch {
	case self.IsDir():
		return s.list()
	case self.Mode().IsRegular():
		return map[string]string{filepath.Base(s.path): s.path}, nil
	default:
		return nil, fmt.Errorf("file: %s is neither a directory nor a regular file (%v): put one there", s.path, self.Mode())
	}
}

// list returns the paths of the documents in the directory by name. It stops with an
// error as soon as there are too many.
func (s *source) list() (map[string]string, error) {
	directory, err := open(s.path)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	defer directory.Close()
	paths := make(map[string]string)
	for {
		entries, err := directory.ReadDir(listBatch)
		for _, entry := range entries {
			if name := entry.Name(); s.format.matches(name) {
				paths[name] = s.join(name)
			}
		}
		switch {
		case len(paths) > s.opts.MaxDocuments:
			return nil, fmt.Errorf("file: %s holds more documents than Options.MaxDocuments allows, which is %d: none was applied",
				s.path, s.opts.MaxDocuments)
		case errors.Is(err, io.EOF):
			return paths, nil
		case err != nil:
			return nil, fmt.Errorf("file: %w", err)
		}
	}
}

// join returns the path of a file in the directory.
func (s *source) join(name string) string { return filepath.Join(s.path, name) }
