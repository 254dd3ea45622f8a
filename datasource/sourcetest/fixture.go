package sourcetest

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// fixture is the store of one test, and what the source has logged.
type fixture struct {
	t       *testing.T
	harness Harness
	store   Store
	want    map[string]string // what the store holds
	log     *logBuffer
}

func newFixture(t *testing.T, h Harness) *fixture {
	t.Helper()
	f := &fixture{t: t, harness: h, want: map[string]string{}, log: &logBuffer{}}
	f.store = h.NewStore(t)
	return f
}

// has says whether the source has a feature.
func (f *fixture) has(feature Feature) bool {
	_, lacks := f.harness.Lacks[feature]
	return !lacks
}

// put writes a document.
func (f *fixture) put(name, content string) {
	f.store.Put(name, content)
	f.want[name] = content
}

// remove deletes a document.
func (f *fixture) remove(name string) {
	f.store.Delete(name)
	delete(f.want, name)
}

func (f *fixture) open() core.Source {
	f.t.Helper()
	return f.openWith(f.harness.Open)
}

func (f *fixture) openWith(open func(*testing.T, Store, Options) core.Source) core.Source {
	f.t.Helper()
	source := open(f.t, f.store, Options{Logger: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NotNil(f.t, source)
	require.NotEmpty(f.t, source.Name(), "the name of the source")
	f.requireNoSecrets("the name of the source", source.Name())
	return source
}

// follow runs a new source until the test ends. Its errors and its log must not contain
// secrets.
func (f *fixture) follow() *Recorder {
	f.t.Helper()
	return f.followSource(f.open())
}

// followSource is like follow, for a source that is open.
func (f *fixture) followSource(source core.Source) *Recorder {
	f.t.Helper()
	r, stop := f.followUntil(source)
	f.t.Cleanup(stop)
	return r
}

// followUntil runs a source until stop is called.
func (f *fixture) followUntil(source core.Source) (r *Recorder, stop func()) {
	f.t.Helper()
	r = &Recorder{patience: f.harness.Patience}
	end := r.follow(f.t, source)
	return r, func() {
		f.t.Helper()
		end()
		f.requireQuiet(r)
	}
}

// requireQuiet fails if what was reported or logged contains secrets.
func (f *fixture) requireQuiet(r *Recorder) {
	f.t.Helper()
	for _, err := range r.Errors() {
		f.requireNoSecrets("an error", err.Error())
	}
	for _, change := range r.Changes() {
		for _, d := range change.Documents {
			f.requireNoSecrets("the name of a document", d.Name)
			if d.Err != nil {
				f.requireNoSecrets("the error of a document", d.Err.Error())
			}
		}
	}
	f.requireNoSecrets("the log", f.log.String())
}

func (f *fixture) requireNoSecrets(where, text string) {
	f.t.Helper()
	for _, secret := range f.harness.Secrets {
		if secret != "" && strings.Contains(text, secret) {
			assert.Failf(f.t, "secret shown", "%s contains a secret: %s", where, text)
		}
	}
}

// await waits until the recorder has what the store holds.
func (f *fixture) await(r *Recorder) {
	f.t.Helper()
	r.AwaitDocuments(f.t, f.want)
}

// limited returns a document with one rule.
func limited(resource string, limit int) string {
	return fmt.Sprintf("flow: [{resource: %s, limit: %d}]\n", resource, limit)
}

// logBuffer is a log that may be written and read concurrently.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
