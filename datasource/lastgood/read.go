package lastgood

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/internal/copyfile"
)

// read returns the copy as a change. The error is [fs.ErrNotExist] if there is no
// copy; any other error says what to do.
func (s *keeper) read() (core.Change, error) {
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
	file, err := copyfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	var data []byte
	if err == nil && info.Size() <= maxSize { // no memory is spent on a larger one
		data, err = io.ReadAll(io.LimitReader(file, maxSize+1))
	}
	switch {
	case err != nil:
		return nil, copyfile.WithoutPath(err)
	case info.Size() > maxSize || len(data) > maxSize: // it may grow while it is read
		return nil, fmt.Errorf("it has more than %d bytes", maxSize)
	}
	return decode(data)
}
