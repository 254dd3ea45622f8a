//go:build unix

package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFlags are for opening a copy: a link or a pipe that has just taken its place
// is not followed or waited for.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// distrustOwner returns why a file may be somebody else's work, nil if it may not.
func distrustOwner(info fs.FileInfo) error {
	const group, others = 0o020, 0o002
	if mode := info.Mode(); mode&(group|others) != 0 {
		return fmt.Errorf("its group or others may write to it (%v): it may not be what was saved", mode)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, and this process runs as user %d", stat.Uid, os.Geteuid())
	}
	return nil
}

// syncDirectory forces to the disk which files the directory has, if its file
// system can.
func syncDirectory(path string) error {
	directory, err := os.Open(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return err
	}
	defer directory.Close()
	err = directory.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}
