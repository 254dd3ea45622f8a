//go:build unix

package copyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
)

// openFlags are for opening a copy: a symbolic link is not followed, and a pipe does
// not block.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// checkOwner returns an error if another user can have written the file.
func checkOwner(path string, info fs.FileInfo) error {
	const group, others = 0o020, 0o002
	if mode := info.Mode(); mode&(group|others) != 0 {
		return fmt.Errorf("its group or others may write to it (%v), it may not be what was saved; if you know that it is, run chmod go-w %s",
			mode, shellQuote(path))
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, and this process runs as user %d; if it is to be believed, run chown %d %s",
			stat.Uid, os.Geteuid(), os.Geteuid(), shellQuote(path))
	}
	return nil
}

// shellQuote quotes the path for a shell, if necessary.
func shellQuote(path string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,@%:", r)
	}
	if strings.IndexFunc(path, special) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// permissionHint adds to an error what to do about a file that may not be read.
func permissionHint(path string, err error) error {
	return fmt.Errorf("%w; run chmod u+r %s", err, shellQuote(path))
}

// SyncDirectory syncs the entries of a directory to disk, if its file system
// supports that.
func SyncDirectory(path string) error {
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
