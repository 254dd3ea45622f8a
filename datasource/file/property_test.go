package file

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// model is a directory that is written to in every way, safe and unsafe, and a
// follower whose every delivery is checked.
type model struct {
	dir      string
	clock    *clock.Virtual
	follower follower
	written  time.Time

	documents map[string]string // as delivered
	before    map[string]string // content of the directory at the poll before
	present   map[string]string // content at this poll
}

// newModel returns the model of a directory. Above the given number of documents
// polls check only a part of them.
func newModel(t *rapid.T, dir string, many int) *model {
	m := &model{
		dir:       dir,
		clock:     clock.NewVirtual(time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)),
		written:   time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		documents: make(map[string]string),
		before:    make(map[string]string),
		present:   make(map[string]string),
	}
	source, err := newSource(dir, Options{Clock: m.clock}, ruleDocuments())
	require.NoError(t, err)
	source.partialScanAbove = many
	m.follower = follower{source: source, sink: checkingSink{t, m}}
	m.poll(t)
	return m
}

func (m *model) poll(t *rapid.T) {
	m.clock.Advance(250 * time.Millisecond)
	m.before, m.present = m.present, m.contents(t)
	require.NoError(t, m.follower.poll())
}

func (m *model) contents(t *rapid.T) map[string]string {
	entries, err := os.ReadDir(m.dir)
	require.NoError(t, err)
	contents := make(map[string]string)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		require.NoError(t, err)
		contents[entry.Name()] = string(data)
	}
	return contents
}

func (m *model) write(t *rapid.T, path, content string) {
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	m.setTimes(t, path)
	m.setTimes(t, m.dir)
}

// setTimes sets the times of a file or directory, because the test makes changes faster
// than the resolution of times in the file system.
func (m *model) setTimes(t *rapid.T, path string) {
	m.written = m.written.Add(time.Second)
	require.NoError(t, os.Chtimes(path, m.written, m.written))
}

// checkingSink is a sink that checks each delivery.
type checkingSink struct {
	t *rapid.T
	*model
}

func (j checkingSink) Disconnected(err error) { require.NoError(j.t, err) }

func (j checkingSink) Status() core.SourceStatus { return core.SourceStatus{Connected: true} }

func (j checkingSink) Document(string) (core.DocumentStatus, bool) {
	return core.DocumentStatus{}, false
}

func (j checkingSink) Apply(change core.Change) {
	for _, d := range change.Documents {
		if d.Err != nil {
			require.ErrorContains(j.t, d.Err, "keeps changing")
			continue
		}
		require.Equal(j.t, j.present[d.Name], string(d.Data), "what is delivered is there")
		require.Contains(j.t, j.before, d.Name, "and existed one poll ago")
		require.Equal(j.t, j.before[d.Name], string(d.Data), "and was the same one poll ago")
		j.documents[d.Name] = string(d.Data)
	}
	for _, name := range change.Removed {
		require.NotContains(j.t, j.present, name, "what is removed is gone")
		require.NotContains(j.t, j.before, name, "and was missing one poll ago")
		delete(j.documents, name)
	}
}

func TestEveryWriteIsDeliveredEventually(t *testing.T) {
	t.Run("few", func(t *testing.T) { checkEveryWriteIsDelivered(t, partialScanAbove, 3) })
	t.Run("many", func(t *testing.T) { checkEveryWriteIsDelivered(t, 0, scanParts+2) })
}

func checkEveryWriteIsDelivered(t *testing.T, many, polls int) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "penstock")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		m := newModel(t, dir, many)
		path := func(t *rapid.T) string {
			return filepath.Join(dir, rapid.SampledFrom([]string{"a.yaml", "b.json", "c.yml"}).Draw(t, "name"))
		}
		content := func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "of"), rapid.IntRange(0, 2).Draw(t, "length"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"poll": m.poll,
			"long": func(t *rapid.T) {
				for range 20 {
					m.poll(t)
				}
			},
			"write": func(t *rapid.T) { m.write(t, path(t), content(t)) },
			"remove": func(t *rapid.T) {
				_ = os.Remove(path(t))
				m.setTimes(t, dir)
			},
			"replace": func(t *rapid.T) {
				hidden := filepath.Join(dir, ".hidden")
				m.write(t, hidden, content(t))
				require.NoError(t, os.Rename(hidden, path(t)))
				m.setTimes(t, dir)
			},
			"quiet": func(t *rapid.T) {
				for range polls {
					m.poll(t)
				}
				require.True(t, maps.Equal(m.present, m.documents), "%v was delivered of %v", m.documents, m.present)
			},
		})
	})
}
