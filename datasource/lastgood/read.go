package lastgood

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/core"
)

// read returns the copy as a change. The error, which says what to do, is
// [fs.ErrNotExist] if there is no copy.
func (s *Source) read() (core.Change, error) {
	c, err := load(s.opts.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Change{}, err
	case err == nil && c.app != s.opts.App:
		err = fmt.Errorf("it is of the application %q, not of %q", c.app, s.opts.App)
	case err == nil && c.source != s.Name():
		err = fmt.Errorf("it is of the source %q", c.source)
	case err == nil:
		return c.change(), nil
	}
	return core.Change{}, fmt.Errorf("lastgood: %s: %w: restore it or let the next save replace it", s.opts.Path, err)
}

// load reads the file at path if it is one that can be trusted.
func load(path string) (*contents, error) {
	found, err := os.Lstat(path)
	if err != nil {
		return nil, cause(err)
	}
	if err := distrust(path, found); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // the path is the operator's
	if errors.Is(err, fs.ErrPermission) {
		return nil, denied(path, cause(err))
	}
	if err != nil {
		return nil, cause(err)
	}
	defer file.Close()
	opened, err := file.Stat() // it may have been replaced
	if err != nil {
		return nil, cause(err)
	}
	if err := distrust(path, opened); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(data) > MaxSize:
		return nil, fmt.Errorf("it has more than %d bytes", MaxSize)
	}
	return decode(data)
}

// distrust returns why a file may be something else than what was saved, nil if
// nothing speaks for it.
func distrust(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v)", info.Mode())
	}
	return distrustOwner(path, info)
}

// cause returns the error less the names of the file and of what was tried.
func cause(err error) error {
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
