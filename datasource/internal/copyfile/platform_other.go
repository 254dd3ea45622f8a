//go:build !unix

package copyfile

import "io/fs"

const openFlags = 0

// checkOwner accepts every file: this system does not report who may write to it.
func checkOwner(string, fs.FileInfo) error { return nil }

// permissionHint returns the error as it is: this system has no file modes.
func permissionHint(_ string, err error) error { return err }

// SyncDirectory does nothing: this system cannot sync directories.
func SyncDirectory(string) error { return nil }
