// Package procfs reads the text files of /proc and /sys/fs/cgroup.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// MaxSize bounds the bytes of a file. The longest, /proc/self/mountinfo, has some hundred
// bytes a mount.
const MaxSize = 8 << 20

// Read returns the text of a file. The name has no slash at the beginning, as package fs
// demands; errors have one.
func Read(fsys fs.FS, name string) (string, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return "", failed(name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	// Large enough for most files to need one read: the kernel makes the text anew for
	// some of the others.
	var text bytes.Buffer
	text.Grow(4096)
	if _, err := text.ReadFrom(io.LimitReader(file, MaxSize+1)); err != nil {
		return "", failed(name, err)
	}
	if text.Len() > MaxSize {
		return "", fmt.Errorf("read /%s: it has more than %d bytes", name, MaxSize)
	}
	return text.String(), nil
}

// Stat returns an error if there is no such file or folder.
func Stat(fsys fs.FS, name string) error {
	if _, err := fs.Stat(fsys, name); err != nil {
		return failed(name, err)
	}
	return nil
}

// failed names the file with its slash in an error that may have it without.
func failed(name string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("read /%s: %w", name, err)
}

// Uint parses a decimal number. White space around it is ignored, and what is beyond 64
// bits is the greatest number that is not.
func Uint(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return math.MaxUint64, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return n, nil
}

// ReadUint returns the number that is all of a file.
func ReadUint(fsys fs.FS, name string) (uint64, error) {
	text, err := Read(fsys, name)
	if err != nil {
		return 0, err
	}
	n, err := Uint(text)
	if err != nil {
		return 0, fmt.Errorf("read /%s: %w", name, err)
	}
	return n, nil
}

// Field returns the number behind a key, in a text with one key and number a line. The key
// may end in a colon in the text, and a unit may follow the number.
func Field(text, key string) (uint64, error) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, key) {
			continue
		}
		if words := strings.Fields(line); len(words) > 1 && strings.TrimSuffix(words[0], ":") == key {
			return Uint(words[1])
		}
	}
	return 0, fmt.Errorf("it has no %q", key)
}

// ReadField returns the number behind a key of a file, as Field does.
func ReadField(fsys fs.FS, name, key string) (uint64, error) {
	text, err := Read(fsys, name)
	if err != nil {
		return 0, err
	}
	n, err := Field(text, key)
	if err != nil {
		return 0, fmt.Errorf("read /%s: %w", name, err)
	}
	return n, nil
}
