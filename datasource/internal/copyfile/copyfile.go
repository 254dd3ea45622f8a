// Package copyfile has what copies of rules and of lists have in common: files that only
// the user of the process can have written, and that are replaced as a whole.
package copyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempSuffix is the suffix of temporary files. Their names begin with a dot and the
// name of the copy.
const tempSuffix = ".unfinished"

// Open opens a copy, if it can be trusted. The error has no path and says what to do; it is
// [fs.ErrNotExist] if there is no copy.
func Open(path string) (*os.File, error) {
	found, err := os.Lstat(path)
	if err != nil {
		return nil, WithoutPath(err)
	}
	if err := checkTrust(path, found); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // the path is the operator's
	if errors.Is(err, fs.ErrPermission) {
		return nil, permissionHint(path, WithoutPath(err))
	}
	if err != nil {
		return nil, WithoutPath(err)
	}
	opened, err := file.Stat() // the file may have been replaced since Lstat
	if err == nil {
		err = checkTrust(path, opened)
	}
	if err != nil {
		_ = file.Close()
		return nil, WithoutPath(err)
	}
	return file, nil
}

// checkTrust returns an error if the file is not regular, or if another user can have
// written it.
func checkTrust(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v)", info.Mode())
	}
	return checkOwner(path, info)
}

// Create makes a temporary file beside a copy, readable to its owner only, that is to
// take its place.
func Create(path string) (*os.File, error) {
	directory, name := filepath.Split(path)
	return os.CreateTemp(directory, "."+name+".*"+tempSuffix)
}

// RemoveTemp removes the temporary files that a process has left which was killed.
func RemoveTemp(path string) {
	directory, name := filepath.Split(path)
	entries, _ := os.ReadDir(directory) // on an error the files stay
	for _, entry := range entries {
		random, begins := strings.CutPrefix(entry.Name(), "."+name+".")
		random, ends := strings.CutSuffix(random, tempSuffix)
		if begins && ends && !strings.Contains(random, ".") { // otherwise it belongs to a copy with a longer name
			_ = os.Remove(filepath.Join(directory, entry.Name()))
		}
	}
}

// WithoutPath returns the error without the path and the operation.
func WithoutPath(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	default:
		return err
	}
}
