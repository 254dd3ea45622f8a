// Package files reads what users name: files, pipes, devices.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Most is how many bytes are read at most: far more than anything here may have,
// and nothing against a device that never ends.
const Most = 16 << 20

// Read returns what a file holds. It fails if that is more than [Most], and with
// the error of ctx as soon as that ends: a pipe may have no writer, or one that
// has nothing to say.
func Read(ctx context.Context, path string) ([]byte, error) {
	return unlessDone(ctx, func() ([]byte, error) { return read(path) })
}

// ReadInput returns what standard input has. It fails as [Read] does.
func ReadInput(ctx context.Context, in io.Reader) ([]byte, error) {
	data, err := unlessDone(ctx, func() ([]byte, error) { return readAll(in) })
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return data, nil
}

// unlessDone returns what reading returns, or the error of ctx if that ends
// before. Nothing can end a read that waits for a pipe: it is left behind, until
// the process ends or somebody writes.
func unlessDone(ctx context.Context, reading func() ([]byte, error)) ([]byte, error) {
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
