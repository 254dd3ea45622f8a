package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/clock"
)

// version is what a document says, or why that cannot be read.
type version struct {
	sum   [sha256.Size]byte
	fault string
}

// found is a file as one look found it.
type found struct {
	version
	info  fs.FileInfo   // nil when the file is faulty, so that it is always read again
	since clock.Instant // when the file was first found like that
	data  []byte        // what was read; nil once the look is over

	// unrest is in how many successive looks the file differed from the look
	// before.
	unrest int
}

// stat returns the file at path without its content; nil if there is none. What has
// taken the place of a file, as the directory does that a container's engine makes
// where the file to mount is missing, is a fault: nobody has taken the document away.
func stat(path string) *found {
	info, err := os.Stat(path)
	if err != nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return faulty(err)
	}
	if !info.Mode().IsRegular() {
		return faulty(irregular(path, info))
	}
	return &found{info: info}
}

// irregular is the fault of what is no file.
func irregular(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is no regular file (%v): put a file there or remove it", path, info.Mode())
}

// read returns the file at path with its content; nil if there is none.
func read(path string) *found {
	file, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return faulty(err)
	}
	defer file.Close()
	info, err := file.Stat() // it may have been replaced since it was looked at
	if err != nil {
		return faulty(err)
	}
	if !info.Mode().IsRegular() {
		return faulty(irregular(path, info))
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxDocumentSize+1))
	switch {
	case err != nil:
		return faulty(err)
	case len(data) > MaxDocumentSize:
		return faulty(fmt.Errorf("%s has more than %d bytes: split the document", path, MaxDocumentSize))
	default:
		return &found{version: version{sum: sha256.Sum256(data)}, info: info, data: data}
	}
}

func faulty(err error) *found {
	return &found{version: version{fault: fmt.Sprintf("file: %v", err)}}
}

// sameFile tells whether nothing shows that the file was written or replaced.
func (f *found) sameFile(other *found) bool {
	if f.info == nil || other.info == nil {
		return f.info == nil && other.info == nil
	}
	return sameState(f.info, other.info)
}

// same tells whether the file is in all respects as it was.
func (f *found) same(other *found) bool {
	return f.sameFile(other) && f.version == other.version
}
