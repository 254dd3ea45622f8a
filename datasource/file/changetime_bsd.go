//go:build darwin || freebsd || netbsd

package file

import (
	"io/fs"
	"syscall"
)

// changeTime returns the inode change time (ctime) of a file in nanoseconds; 0 if it is
// unknown. Unlike the modification time it cannot be set by a program.
func changeTime(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctimespec.Nano()
	}
	return 0
}
