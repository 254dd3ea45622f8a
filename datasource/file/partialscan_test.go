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

// recordingSink is a sink that records what it receives.
type recordingSink struct {
	discardSink
	documents map[string]string
	faulty    map[string]error
	changes   int
}

func (s *recordingSink) Apply(change core.Change) {
	s.changes++
	for _, d := range change.Documents {
		s.documents[d.Name], s.faulty[d.Name] = string(d.Data), d.Err
	}
	for _, name := range change.Removed {
		delete(s.documents, name)
	}
}

// directory is a directory with many documents that a follower has found stable.
type directory struct {
	t        *testing.T
	path     string
	clock    *clock.Virtual
	sink     *recordingSink
	follower follower
	written  time.Time
}

const documents = 200

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{
		t: t, path: t.TempDir(), clock: clock.NewVirtual(time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)),
		sink:    &recordingSink{documents: map[string]string{}, faulty: map[string]error{}},
		written: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for i := range documents {
		d.write(fmt.Sprintf("%d.yaml", i), "0")
	}
	source, err := newSource(d.path, Options{Clock: d.clock}, ruleDocuments())
	require.NoError(t, err)
	source.partialScanAbove = 10
	d.follower = follower{source: source, sink: d.sink}
	d.pollUntilPartial()
	return d
}

// write writes a file and sets the times of the file and the directory, because the
// test makes changes faster than the resolution of times in the file system.
func (d *directory) write(name, content string) {
	path := filepath.Join(d.path, name)
	require.NoError(d.t, os.WriteFile(path, []byte(content), 0o600))
	d.setTimes(path)
}

func (d *directory) setTimes(path string) {
	d.written = d.written.Add(time.Second)
	require.NoError(d.t, os.Chtimes(path, d.written, d.written))
}

func (d *directory) poll(n int) {
	for range n {
		d.clock.Advance(250 * time.Millisecond)
		require.NoError(d.t, d.follower.poll())
	}
}

// pollUntilPartial polls until polls check only a part of the documents.
func (d *directory) pollUntilPartial() {
	d.t.Helper()
	d.poll(20)
	require.Len(d.t, d.follower.partial, len(d.sink.documents))
}

func TestPollChecksAPartOfManyStableDocuments(t *testing.T) {
	d := newDirectory(t)
	first := d.follower.nextInPartial
	d.poll(1)
	assert.Equal(t, (first+(documents+scanParts-1)/scanParts)%documents, d.follower.nextInPartial)
	assert.Equal(t, 1, d.sink.changes)
}

func TestChangeAmongManyDocumentsIsDelivered(t *testing.T) {
	d := newDirectory(t)
	for name, test := range map[string]struct {
		do    func(name, path string)
		polls int // polls until the change is seen
		want  string
	}{
		"written in place": {func(name, _ string) { d.write(name, "1") }, scanParts, "1"},
		"replaced": {func(_, path string) {
			d.write(".new", "2")
			require.NoError(t, os.Rename(filepath.Join(d.path, ".new"), path))
			d.setTimes(d.path)
		}, 1, "2"},
		"removed": {func(_, path string) {
			require.NoError(t, os.Remove(path))
			d.setTimes(d.path)
		}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, i := range []int{0, 1, documents / 2, documents - 1} {
				name := d.follower.partial[i%len(d.follower.partial)].name
				test.do(name, filepath.Join(d.path, name))
				d.poll(test.polls + 1)
				require.Equal(t, test.want, d.sink.documents[name])
				d.pollUntilPartial()
			}
		})
	}
	d.write("new.yaml", "3")
	d.setTimes(d.path)
	d.poll(2)
	assert.Equal(t, "3", d.sink.documents["new.yaml"])
	assert.Len(t, d.sink.documents, documents-4+1)
}

func TestFilesAmongManyWrittenTogetherAreOneChange(t *testing.T) {
	d := newDirectory(t)
	for i := range documents {
		d.write(fmt.Sprintf("%d.yaml", i), "1")
	}
	before := d.sink.changes
	d.poll(2)
	assert.Equal(t, before+1, d.sink.changes)
	for name, content := range d.sink.documents {
		require.Equal(t, "1", content, name)
	}
}

func TestUnreadableDocumentAmongManyCausesNoFullScan(t *testing.T) {
	d := newDirectory(t)
	path := filepath.Join(d.path, "7.yaml")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	d.setTimes(d.path)
	d.poll(2)
	require.ErrorContains(t, d.sink.faulty["7.yaml"], "no regular file")
	d.pollUntilPartial()
	changes := d.sink.changes
	d.poll(2 * scanParts)
	assert.Equal(t, changes, d.sink.changes)
	assert.NotEmpty(t, d.follower.partial)

	require.NoError(t, os.Remove(path))
	d.write("7.yaml", "1")
	d.setTimes(d.path)
	d.poll(2)
	assert.NoError(t, d.sink.faulty["7.yaml"])
}

func TestUnreadableDirectoryOfManyDocumentsIsScannedInFull(t *testing.T) {
	d := newDirectory(t)
	require.NoError(t, os.Rename(d.path, d.path+"2"))
	d.clock.Advance(time.Second)
	require.ErrorIs(t, d.follower.poll(), os.ErrNotExist)
	require.NoError(t, os.Rename(d.path+"2", d.path))
	changes := d.sink.changes
	d.poll(1)
	assert.True(t, d.follower.connected)
	assert.Equal(t, changes+1, d.sink.changes, "it says that the source is back")
}

func TestUnchangedFileIsNotReadAgain(t *testing.T) {
	d := newDirectory(t)
	now := d.clock.Now()
	before := d.follower.previous["1.yaml"]
	assert.Same(t, before, d.follower.find("1.yaml", filepath.Join(d.path, "1.yaml"), now))
	d.write("1.yaml", "0")
	assert.NotSame(t, before, d.follower.find("1.yaml", filepath.Join(d.path, "1.yaml"), now))
}
