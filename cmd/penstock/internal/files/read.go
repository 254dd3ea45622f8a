// Package files reads files, pipes and devices that users name.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Most is the highest number of bytes to read: far more than any valid input has, but
// bounded for a device that never ends.
const Most = 16 << 20

// Read returns the content of a file. It returns an error if that is more than [Most],
// and the error of ctx as soon as that ends, because reading a pipe may block.
func Read(ctx context.Context, path string) ([]byte, error) {
	return readWithContext(ctx, func() ([]byte, error) { return read(path) })
}

// ReadInput returns the content of standard input, with the same errors as [Read].
func ReadInput(ctx context.Context, in io.Reader) ([]byte, error) {
	data, err := readWithContext(ctx, func() ([]byte, error) { return readAll(in) })
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return data, nil
}

// readWithContext returns the result of reading, or the error of ctx if that ends first. A
// read that blocks on a pipe cannot be interrupted: its goroutine remains until the
// process ends or somebody writes.
func readWithContext(ctx context.Context, reading func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := reading()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := readAll(file)
	if errors.Is(err, errTooLong) { // other errors name the file
		err = fmt.Errorf("%s: %w", path, err)
	}
	return data, err
}

var errTooLong = fmt.Errorf("it is longer than %d MiB: is it the right one?", Most>>20)

func readAll(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, Most+1))
	if err == nil && len(data) > Most {
		err = errTooLong
	}
	return data, err
}
