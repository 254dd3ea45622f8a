//go:build !(linux || openbsd || dragonfly || solaris || illumos || darwin || freebsd || netbsd)

package file

import "io/fs"

// changeTime returns 0: this system does not report an inode change time.
func changeTime(fs.FileInfo) int64 { return 0 }
