package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/file"
)

// mapFile maps a file into memory and writes to it once. From then on, until the system
// writes the page to the disk, a change of the memory changes the file and none of its
// times.
func mapFile(t *testing.T, path string) []byte {
	t.Helper()
	opened, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer opened.Close()
	info, err := opened.Stat()
	require.NoError(t, err)
	data, err := syscall.Mmap(int(opened.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(data)) })
	copy(data[:1], []byte{data[0]})
	return data
}

// writeHidden changes the content of a mapped file, unless that shows in its times.
func writeHidden(t *testing.T, path string, mapped []byte, content string) {
	t.Helper()
	require.Len(t, mapped, len(content))
	before, err := os.Stat(path)
	require.NoError(t, err)
	copy(mapped, content)
	after, err := os.Stat(path)
	require.NoError(t, err)
	if !after.ModTime().Equal(before.ModTime()) || file.Changed(after) != file.Changed(before) {
		t.Skip("this file system tells of every change")
	}
}

func TestChangeThatTheFileSystemHidesIsSeenWithinTheCompareInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	mapped := mapFile(t, path)
	follow(t, path, file.Options{CompareInterval: 20 * interval}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		b.poll(20)
		writeHidden(t, path, mapped, "2")
		b.poll(22)
		b.requireDocuments(2, map[string]string{"a.yaml": "2"})
		b.poll(100)
		assert.Len(t, b.changes, 2)
	})
}
