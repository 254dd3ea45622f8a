//go:build unix

package lastgood_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A full disk accepts a part of a file, and then nothing.
func TestInterruptedSaveKeepsTheOldCopy(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then fails
	defer signal.Reset(syscall.SIGXFSZ)
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Second)
		lift := limitFiles(t, 100)
		s.deliver(some(2, rule("a", "2", 2)))
		s.pass(time.Minute)
		lift()
		s.requireSaved(map[string]string{"a": "1"})
		require.Equal(t, 1, s.log.count("cannot be saved", s.path+": writing: file too large"))
		entries, err := os.ReadDir(filepath.Dir(s.path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing is left of it")

		s.pass(32 * time.Second)
		s.requireSaved(map[string]string{"a": "2"})
	})
}

// limitFiles limits the size of files that the process writes, until lift is called.
func limitFiles(t *testing.T, size uint64) (lift func()) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}))
	return func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
}
