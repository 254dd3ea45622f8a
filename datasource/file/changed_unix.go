//go:build linux || openbsd || dragonfly || solaris || illumos

package file

import (
	"io/fs"
	"syscall"
)

// changed returns when the file, or what is known of it, was last changed, in
// nanoseconds; 0 when that cannot be told. Unlike the time of modification,
// nobody can set it back.
func changed(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return 0
}
