//go:build unix

package file

import (
	"os"
	"syscall"
)

// open opens a file for reading. It does not block if the path is a pipe.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the path is the operator's
}
