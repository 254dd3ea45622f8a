package lastgood_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(saveForever); path != "" {
		saveUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

// begin is the initial time of the clocks.
func begin() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// script is a source that executes the steps of a test.
type script struct {
	name  string
	steps chan func(core.Sink)
	end   error // what Run returns when a step is nil
}

func newScript() *script { return &script{name: "script", steps: make(chan func(core.Sink))} }

func (s *script) Name() string { return s.name }

func (s *script) Run(ctx context.Context, sink core.Sink) error {
	for {
		select {
		case step := <-s.steps:
			if step == nil {
				return s.end
			}
			step(sink)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// log collects log lines.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// count returns how many lines contain all the texts.
func (l *log) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			n++
		}
	}
	return n
}

// service is an engine that follows a script with a copy, on a clock that the test
// advances. It is idle between the steps of the test.
type service struct {
	*core.Engine
	t      *testing.T
	clock  *clock.Virtual
	source *script
	kept   core.Source
	path   string
	log    *log
	drain  func() // ends the run, not the engine
}

// start starts a service in the bubble of a test.
func start(t *testing.T, path string, at time.Time, opts ...func(*lastgood.Options)) *service {
	t.Helper()
	s := prepare(t, path, at, opts...)
	s.follow()
	return s
}

// prepare returns a service that does not follow its source yet.
func prepare(t *testing.T, path string, at time.Time, opts ...func(*lastgood.Options)) *service {
	t.Helper()
	s := &service{t: t, clock: clock.NewVirtual(at), source: newScript(), path: path, log: new(log)}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	options := lastgood.Options{Path: path, App: "shop", Logger: logger, Clock: s.clock}
	for _, change := range opts {
		change(&options)
	}
	var err error
	s.kept, err = lastgood.Keep(s.source, options)
	require.NoError(t, err)
	s.Engine = core.New(core.Config{Clock: s.clock, Logger: logger})
	t.Cleanup(s.Close)
	return s
}

func (s *service) follow() {
	ctx, cancel := context.WithCancel(s.t.Context())
	require.NoError(s.t, s.Follow(ctx, s.kept))
	synctest.Wait()
	s.drain = func() { cancel(); synctest.Wait() }
}

// do makes the source execute a step.
func (s *service) do(step func(core.Sink)) {
	s.source.steps <- step
	synctest.Wait()
}

func (s *service) deliver(change core.Change) { s.do(func(sink core.Sink) { sink.Apply(change) }) }

func (s *service) lose(reason string) {
	s.do(func(sink core.Sink) { sink.Disconnected(errors.New(reason)) })
}

// pass advances the clock.
func (s *service) pass(d time.Duration) {
	s.clock.Advance(d)
	synctest.Wait()
}

func (s *service) status() core.SourceStatus { return s.Status().Sources[0] }

// limits returns the limits in force by resource.
func (s *service) limits() map[string]float64 {
	limits := map[string]float64{}
	for _, r := range s.Snapshot().Resources {
		for _, f := range r.Rules {
			limits[r.Name] = f.Quota.Limit
		}
	}
	return limits
}

// all returns a complete change.
func all(revision int64, documents ...core.Document) core.Change {
	return core.Change{Complete: true, Revision: revision, Documents: documents}
}

func some(revision int64, documents ...core.Document) core.Change {
	return core.Change{Revision: revision, Documents: documents}
}

// rule returns a document with one rule for the resource of the same name.
func rule(name, limit string, revision int64) core.Document {
	return core.Document{
		Name: name, Revision: revision, Data: []byte("flow: [{resource: " + name + ", limit: " + limit + "}] # -> \"é\"\n"),
	}
}

// saved returns the documents in the copy, read as JSON; nil without a copy.
func saved(t require.TestingT, path string) map[string]string {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	_, body, _ := bytes.Cut(data, []byte("\n"))
	var c struct{ Documents []struct{ Name, Data string } }
	require.NoError(t, json.Unmarshal(body, &c))
	documents := map[string]string{}
	for _, d := range c.Documents {
		documents[d.Name] = d.Data
	}
	return documents
}

// identity returns file information that differs after each save.
func identity(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}

func copyPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "rules.copy")
}

// savedBy saves a copy of the documents with the initial time.
func savedBy(t *testing.T, path string, change core.Change) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.deliver(change)
		s.drain()
		require.Len(t, saved(t, path), len(change.Documents))
	})
}
