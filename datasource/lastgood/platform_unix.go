//go:build unix

package lastgood

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
)

// openFlags are for opening a copy: a link or a pipe that has just taken its place
// is not followed or waited for.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// distrustOwner returns why the file at the path may be somebody else's work, nil
// if it may not.
func distrustOwner(path string, info fs.FileInfo) error {
	const group, others = 0o020, 0o002
	if mode := info.Mode(); mode&(group|others) != 0 {
		return fmt.Errorf("its group or others may write to it (%v), it may not be what was saved; if you know that it is, run chmod go-w %s",
			mode, shell(path))
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, and this process runs as user %d; if it is to be believed, run chown %d %s",
			stat.Uid, os.Geteuid(), os.Geteuid(), shell(path))
	}
	return nil
}

// shell returns the path as a shell takes it.
func shell(path string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,@%:", r)
	}
	if strings.IndexFunc(path, special) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// denied says what to do about a file that may not be read.
func denied(path string, err error) error {
	return fmt.Errorf("%w; run chmod u+r %s", err, shell(path))
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
