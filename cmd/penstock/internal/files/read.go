// Package files reads what users name: files, pipes, devices.
package files

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Most is how many bytes are read at most: far more than anything here may have,
// and nothing against a device that never ends.
const Most = 16 << 20

// Read returns what a file holds. It fails if that is more than [Most].
func Read(path string) ([]byte, error) {
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

// ReadInput returns what standard input has. It fails if that is more than
// [Most].
func ReadInput(in io.Reader) ([]byte, error) {
	data, err := readAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return data, nil
}

var errTooLong = fmt.Errorf("it is longer than %d MiB: is it the right one?", Most>>20)

func readAll(in io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, Most+1))
	if err == nil && len(data) > Most {
		err = errTooLong
	}
	return data, err
}
