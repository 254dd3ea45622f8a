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

// model is a directory that is written to in every way, good and bad, and a
// follower of it whose every delivery is judged.
type model struct {
	dir      string
	clock    *clock.Virtual
	follower follower
	written  time.Time

	documents map[string]string // as delivered
	before    map[string]string // what the directory held at the look before
	present   map[string]string // what it holds at this look
}

// newModel returns the model of a directory in which more documents than the
// given number are many.
func newModel(t *rapid.T, dir string, many int) *model {
	m := &model{
		dir:       dir,
		clock:     clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)),
		written:   time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		documents: make(map[string]string),
		before:    make(map[string]string),
		present:   make(map[string]string),
	}
	source, err := New(dir, Options{Clock: m.clock})
	require.NoError(t, err)
	source.many = many
	m.follower = follower{source: source, sink: judge{t, m}}
	m.look(t)
	return m
}

func (m *model) look(t *rapid.T) {
	m.clock.Advance(250 * time.Millisecond)
	m.before, m.present = m.present, m.contents(t)
	require.NoError(t, m.follower.look())
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
	m.date(t, path)
	m.date(t, m.dir)
}

// date dates a file or directory: the clock of the test is faster than that of the
// file system, which would not tell two changes apart.
func (m *model) date(t *rapid.T, path string) {
	m.written = m.written.Add(time.Second)
	require.NoError(t, os.Chtimes(path, m.written, m.written))
}

// judge takes what the follower delivers.
type judge struct {
	t *rapid.T
	*model
}

func (j judge) Disconnected(err error) { require.NoError(j.t, err) }

func (j judge) Status() core.SourceStatus { return core.SourceStatus{Connected: true} }

func (j judge) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

func (j judge) Apply(change core.Change) {
	for _, d := range change.Documents {
		if d.Err != nil {
			require.ErrorContains(j.t, d.Err, "keeps changing")
			continue
		}
		require.Equal(j.t, j.present[d.Name], string(d.Data), "what is delivered is there")
		require.Contains(j.t, j.before, d.Name, "and was there a look ago")
		require.Equal(j.t, j.before[d.Name], string(d.Data), "and was the same a look ago")
		j.documents[d.Name] = string(d.Data)
	}
	for _, name := range change.Removed {
		require.NotContains(j.t, j.present, name, "what is removed is gone")
		require.NotContains(j.t, j.before, name, "and was gone a look ago")
		delete(j.documents, name)
	}
}

func TestWhateverIsWrittenHoweverIsDeliveredInTheEnd(t *testing.T) {
	t.Run("few", func(t *testing.T) { whateverIsWritten(t, many, 3) })
	t.Run("many", func(t *testing.T) { whateverIsWritten(t, 0, parts+2) })
}

func whateverIsWritten(t *testing.T, many, looks int) {
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
			"look": m.look,
			"long": func(t *rapid.T) {
				for range 20 {
					m.look(t)
				}
			},
			"write": func(t *rapid.T) { m.write(t, path(t), content(t)) },
			"remove": func(t *rapid.T) {
				_ = os.Remove(path(t))
				m.date(t, dir)
			},
			"replace": func(t *rapid.T) {
				hidden := filepath.Join(dir, ".hidden")
				m.write(t, hidden, content(t))
				require.NoError(t, os.Rename(hidden, path(t)))
				m.date(t, dir)
			},
			"rest": func(t *rapid.T) {
				for range looks {
					m.look(t)
				}
				require.True(t, maps.Equal(m.present, m.documents), "%v was delivered of %v", m.documents, m.present)
			},
		})
	})
}
