package file_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/internal/longtest"
)

const interval = 250 * time.Millisecond

func TestMain(m *testing.M) {
	longtest.Checks(25)
	goleak.VerifyTestMain(m)
}

// sink records what a source delivers and keeps the documents, as an engine does.
type sink struct {
	changes   []core.Change
	documents map[string]string
	faulty    map[string]error
	errs      []error
	connected bool
}

func (s *sink) Apply(change core.Change) {
	if change.Complete {
		s.documents, s.faulty = map[string]string{}, map[string]error{}
	}
	for _, d := range change.Documents {
		if d.Err != nil {
			s.faulty[d.Name] = d.Err
			continue
		}
		s.documents[d.Name] = string(d.Data)
		delete(s.faulty, d.Name)
	}
	for _, name := range change.Removed {
		delete(s.documents, name)
		delete(s.faulty, name)
	}
	s.changes = append(s.changes, change)
	s.connected = true
}

func (s *sink) Disconnected(err error) {
	s.errs = append(s.errs, err)
	s.connected = false
}

func (*sink) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

func (s *sink) Status() core.SourceStatus { return core.SourceStatus{Connected: s.connected} }

// fixture runs a source on a clock that the test advances. Between two polls the
// source is idle, so that the test may read the sink.
type fixture struct {
	*sink
	t     *testing.T
	clock *clock.Virtual
}

// follow runs do with a source that has polled once. Files that exist by then count
// as written long before: the clock is ahead of the times that write sets. Both are before
// 2038, from when on processes of 32 bits and some file systems have no times.
func follow(t *testing.T, path string, opts file.Options, do func(t *testing.T, b *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{sink: &sink{}, t: t, clock: clock.NewVirtual(time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC))}
		opts.Clock = b.clock
		source, err := file.New(path, opts)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, b.sink) }()
		synctest.Wait()
		do(t, b)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Zero(t, b.clock.Timers())
	})
}

// poll makes the source poll n times.
func (b *fixture) poll(n int) {
	for range n {
		b.clock.Advance(interval)
		synctest.Wait()
	}
}

// passCoarseTime advances the clock until the source relies on modification times.
func (b *fixture) passCoarseTime() { b.poll(20) }

// touch sets the modification time of a file to the time of the clock.
func (b *fixture) touch(path string) {
	require.NoError(b.t, os.Chtimes(path, time.Time{}, b.clock.Now().Time()))
}

// requireDocuments asserts that the source is connected and these are its documents, after
// n changes.
func (b *fixture) requireDocuments(changes int, documents map[string]string) {
	b.t.Helper()
	require.True(b.t, b.connected)
	require.Len(b.t, b.changes, changes)
	require.True(b.t, maps.Equal(documents, b.documents), "%v", b.documents)
}

// writes counts writes.
var writes atomic.Int64

// write writes the file and sets its modification time one second after that of the
// write before, because the test writes faster than the resolution of times in the
// file system.
func write(t require.TestingT, path, content string) {
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	at := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(writes.Add(1)) * time.Second)
	require.NoError(t, os.Chtimes(path, at, at))
}

// replace replaces the file safely: it writes another file and renames it.
func replace(t require.TestingT, path, content string) {
	hidden := filepath.Join(filepath.Dir(path), ".new")
	write(t, hidden, content)
	require.NoError(t, os.Rename(hidden, path))
}

func remove(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.Remove(path))
}
