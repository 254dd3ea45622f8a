package file

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/clock"
)

// version is the checksum of a document, or why it cannot be read.
type version struct {
	sum   [sha256.Size]byte
	fault string
}

// fileState is the state of a file at one poll.
type fileState struct {
	version
	info  fs.FileInfo   // nil if the file is faulty, so that it is always read again
	since clock.Instant // when the file was first found like that
	read  clock.Instant // when its content was read last
	data  []byte        // what is delivered; nil after the poll

	// unstablePolls is how many successive polls found the file different from the poll
	// before.
	unstablePolls int
}

// stat returns the state of the file at path without its content; nil if there is
// none. Anything that is not a regular file is faulty, not missing: a container
// engine, for instance, makes a directory where the file to mount is missing.
func stat(path string) *fileState {
	info, err := os.Stat(path)
	if err != nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return faulty(err)
	}
	if !info.Mode().IsRegular() {
		return faulty(irregularError(path, info))
	}
	return &fileState{info: info}
}

// irregularError is the error for a path that is not a regular file.
func irregularError(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is no regular file (%v): put a file there or remove it", path, info.Mode())
}

// read returns the state of the file at path with its content, or only the checksum of
// it; nil if there is none.
func (f format) read(path string) *fileState {
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return faulty(err)
	}
	defer file.Close()
	info, err := file.Stat() // it may have been replaced since stat
	if err != nil {
		return faulty(err)
	}
	if !info.Mode().IsRegular() {
		return faulty(irregularError(path, info))
	}
	var data bytes.Buffer
	sum := sha256.New()
	to := io.MultiWriter(sum, &data)
	if f.checksumOnly {
		to = sum
	}
	size, err := io.Copy(to, io.LimitReader(file, f.maxSize+1))
	switch {
	case err != nil:
		return faulty(err)
	case size > f.maxSize:
		return faulty(fmt.Errorf("%s has more than %d bytes: %s", path, f.maxSize, f.tooLong))
	}
	state := &fileState{info: info, data: data.Bytes()}
	sum.Sum(state.sum[:0])
	if f.checksumOnly {
		state.data = state.sum[:]
	}
	return state
}

func faulty(err error) *fileState {
	return &fileState{version: version{fault: fmt.Sprintf("file: %v", err)}}
}

// sameFile reports whether identity, size and times are the same.
func (f *fileState) sameFile(other *fileState) bool {
	if f.info == nil || other.info == nil {
		return f.info == nil && other.info == nil
	}
	return sameState(f.info, other.info)
}

// same reports whether identity, size, times and content are the same.
func (f *fileState) same(other *fileState) bool {
	return f.sameFile(other) && f.version == other.version
}
