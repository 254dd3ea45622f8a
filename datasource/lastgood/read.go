package lastgood

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/core"
)

// read returns the copy as a change. The error is [fs.ErrNotExist] if there is no
// copy; any other error says what to do.
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

// load reads and decodes the file at path, if it can be trusted.
func load(path string) (*contents, error) {
	found, err := os.Lstat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if err := checkTrust(path, found); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0) //nolint:gosec // the path is the operator's
	if errors.Is(err, fs.ErrPermission) {
		return nil, permissionHint(path, withoutPath(err))
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	opened, err := file.Stat() // the file may have been replaced since Lstat
	if err != nil {
		return nil, withoutPath(err)
	}
	if err := checkTrust(path, opened); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case len(data) > MaxSize:
		return nil, fmt.Errorf("it has more than %d bytes", MaxSize)
	}
	return decode(data)
}

// checkTrust returns an error if the file is not regular, or if another user can have
// written it.
func checkTrust(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v)", info.Mode())
	}
	return checkOwner(path, info)
}

// withoutPath returns the error without the path and the operation.
func withoutPath(err error) error {
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
