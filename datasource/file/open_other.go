//go:build !unix

package file

import "os"

// open opens a file for reading.
func open(path string) (*os.File, error) {
	return os.Open(path) //nolint:gosec // the path is the operator's
}
