package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/sourcetest"
)

var _ sourcetest.Hider = (*directory)(nil)

// PutHidden implements [sourcetest.Hider]: it maps the file into memory and writes to it. From then on,
// until the system writes the page to the disk, a change of the memory changes the file and none of its
// times. It waits until the source relies on these.
func (d *directory) PutHidden(name, content string) {
	opened, err := os.OpenFile(filepath.Join(d.at, name), os.O_RDWR, 0)
	require.NoError(d.t, err)
	defer opened.Close()
	mapped, err := syscall.Mmap(int(opened.Fd()), 0, len(content), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, syscall.Munmap(mapped)) })
	copy(mapped[:1], []byte{mapped[0]})
	start := time.Now()
	require.Eventually(d.t, func() bool { return time.Since(start) > 2500*time.Millisecond }, sourcetest.Patience, 10*time.Millisecond)
	before := timesOf(d, opened)
	copy(mapped, content)
	if timesOf(d, opened) != before {
		d.t.Skip("this file system tells of every change")
	}
}

// timesOf returns when the content of a file was changed, and when the file was.
func timesOf(d *directory, opened *os.File) [2]syscall.Timespec {
	info, err := opened.Stat()
	require.NoError(d.t, err)
	stat := info.Sys().(*syscall.Stat_t)
	return [2]syscall.Timespec{stat.Mtim, stat.Ctim}
}
