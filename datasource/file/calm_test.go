package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// taker is a sink that keeps what it was given.
type taker struct {
	nobody
	documents map[string]string
	faulty    map[string]error
	changes   int
}

func (s *taker) Apply(change core.Change) {
	s.changes++
	for _, d := range change.Documents {
		s.documents[d.Name], s.faulty[d.Name] = string(d.Data), d.Err
	}
	for _, name := range change.Removed {
		delete(s.documents, name)
	}
}

// directory is one with many documents, which its follower has found at rest.
type directory struct {
	t        *testing.T
	path     string
	clock    *clock.Virtual
	sink     *taker
	follower follower
	written  time.Time
}

const documents = 200

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{
		t: t, path: t.TempDir(), clock: clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)),
		sink:    &taker{documents: map[string]string{}, faulty: map[string]error{}},
		written: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for i := range documents {
		d.write(fmt.Sprintf("%d.yaml", i), "0")
	}
	source, err := New(d.path, Options{Clock: d.clock})
	require.NoError(t, err)
	source.many = 10
	d.follower = follower{source: source, sink: d.sink}
	d.rest()
	return d
}

// write writes a file and dates it, and dates the directory, which a test changes
// faster than the file system tells times apart.
func (d *directory) write(name, content string) {
	path := filepath.Join(d.path, name)
	require.NoError(d.t, os.WriteFile(path, []byte(content), 0o600))
	d.date(path)
}

func (d *directory) date(path string) {
	d.written = d.written.Add(time.Second)
	require.NoError(d.t, os.Chtimes(path, d.written, d.written))
}

func (d *directory) look(n int) {
	for range n {
		d.clock.Advance(250 * time.Millisecond)
		require.NoError(d.t, d.follower.look())
	}
}

// rest looks until it is enough to look at parts.
func (d *directory) rest() {
	d.t.Helper()
	d.look(20)
	require.Len(d.t, d.follower.watched, len(d.sink.documents))
}

func TestOfManyDocumentsAPartIsLookedAt(t *testing.T) {
	d := newDirectory(t)
	first := d.follower.next
	d.look(1)
	assert.Equal(t, (first+(documents+parts-1)/parts)%documents, d.follower.next)
	assert.Equal(t, 1, d.sink.changes)
}

func TestChangeAmongManyDocumentsIsDelivered(t *testing.T) {
	d := newDirectory(t)
	for name, test := range map[string]struct {
		do    func(name, path string)
		looks int // until the change is seen
		want  string
	}{
		"written in place": {func(name, _ string) { d.write(name, "1") }, parts, "1"},
		"replaced": {func(_, path string) {
			d.write(".new", "2")
			require.NoError(t, os.Rename(filepath.Join(d.path, ".new"), path))
			d.date(d.path)
		}, 1, "2"},
		"removed": {func(_, path string) {
			require.NoError(t, os.Remove(path))
			d.date(d.path)
		}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, i := range []int{0, 1, documents / 2, documents - 1} {
				name := d.follower.watched[i%len(d.follower.watched)].name
				test.do(name, filepath.Join(d.path, name))
				d.look(test.looks + 1)
				require.Equal(t, test.want, d.sink.documents[name])
				d.rest()
			}
		})
	}
	d.write("new.yaml", "3")
	d.date(d.path)
	d.look(2)
	assert.Equal(t, "3", d.sink.documents["new.yaml"])
	assert.Len(t, d.sink.documents, documents-4+1)
}

func TestFilesAmongManyThatAreWrittenTogetherAreOneChange(t *testing.T) {
	d := newDirectory(t)
	for i := range documents {
		d.write(fmt.Sprintf("%d.yaml", i), "1")
	}
	before := d.sink.changes
	d.look(2)
	assert.Equal(t, before+1, d.sink.changes)
	for name, content := range d.sink.documents {
		require.Equal(t, "1", content, name)
	}
}

func TestDocumentAmongManyThatCannotBeReadIsNoReasonToLookAtAll(t *testing.T) {
	d := newDirectory(t)
	path := filepath.Join(d.path, "7.yaml")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	d.date(d.path)
	d.look(2)
	require.ErrorContains(t, d.sink.faulty["7.yaml"], "no regular file")
	d.rest()
	changes := d.sink.changes
	d.look(2 * parts)
	assert.Equal(t, changes, d.sink.changes)
	assert.NotEmpty(t, d.follower.watched)

	require.NoError(t, os.Remove(path))
	d.write("7.yaml", "1")
	d.date(d.path)
	d.look(2)
	assert.NoError(t, d.sink.faulty["7.yaml"])
}

func TestDirectoryOfManyDocumentsThatCannotBeReadIsNotAtRest(t *testing.T) {
	d := newDirectory(t)
	require.NoError(t, os.Rename(d.path, d.path+"2"))
	d.clock.Advance(time.Second)
	require.ErrorIs(t, d.follower.look(), os.ErrNotExist)
	require.NoError(t, os.Rename(d.path+"2", d.path))
	changes := d.sink.changes
	d.look(1)
	assert.True(t, d.follower.connected)
	assert.Equal(t, changes+1, d.sink.changes, "it says that the source is back")
}

func TestFileThatShowsNoChangeIsNotReadAgain(t *testing.T) {
	d := newDirectory(t)
	now := d.clock.Now()
	before := d.follower.previous["1.yaml"]
	assert.Same(t, before, d.follower.find("1.yaml", filepath.Join(d.path, "1.yaml"), now))
	d.write("1.yaml", "0")
	assert.NotSame(t, before, d.follower.find("1.yaml", filepath.Join(d.path, "1.yaml"), now))
}
