package etcdtest_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// eventTimeout is how long a test waits for an expected event.
const eventTimeout = 20 * time.Second

// sink records what a source delivers and keeps the documents, as an engine does.
type sink struct {
	mu        sync.Mutex // guards the fields below
	changes   []core.Change
	documents map[string]string
	faulty    map[string]error
	errs      []error
	connected bool
}

func (s *sink) Apply(change core.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Complete {
		s.documents, s.faulty = map[string]string{}, map[string]error{}
	}
	for _, d := range change.Documents {
		if d.Err != nil {
			s.faulty[d.Name] = d.Err
			continue
		}
		s.documents[d.Name] = string(d.Data)
	}
	for _, name := range change.Removed {
		delete(s.documents, name)
	}
	s.changes = append(s.changes, change)
	s.connected = true
}

func (s *sink) Disconnected(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	s.connected = false
}

func (*sink) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

func (s *sink) Status() core.SourceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.SourceStatus{Connected: s.connected}
}

// applied returns the changes so far.
func (s *sink) applied() []core.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

// disconnections returns the errors reported so far.
func (s *sink) disconnections() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.errs)
}

// history returns the texts that a document has had, one after the other.
func (s *sink) history(name string) (texts []string) {
	for _, change := range s.applied() {
		for _, d := range change.Documents {
			if text := string(d.Data); d.Name == name && (len(texts) == 0 || texts[len(texts)-1] != text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// current returns the documents as they are now.
func (s *sink) current() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.documents)
}

// fault returns the error of the document.
func (s *sink) fault(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faulty[name]
}

// awaitDocuments waits until the source is connected and these are its
// documents.
func (s *sink) awaitDocuments(t *testing.T, want map[string]string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.connected && maps.Equal(s.documents, want)
	}, eventTimeout, time.Millisecond, "the source did not come to %v", want)
}

// awaitError waits until the source has reported an error that matches.
func (s *sink) awaitError(t *testing.T, matches func(error) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(s.disconnections(), matches)
	}, eventTimeout, time.Millisecond, "the source did not report the error")
}

// follow runs the source until the test ends.
func follow(t *testing.T, source core.Source) *sink {
	t.Helper()
	s := &sink{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled, "what Run returns when its context has ended")
	})
	return s
}

// inOrder fails if a change is older than the one before it, or changes nothing. It
// is for tests whose cluster is never restored.
func (s *sink) inOrder(t require.TestingT) {
	var revision int64
	versions := map[string]int64{}
	for _, change := range s.applied() {
		if change.Complete {
			require.GreaterOrEqual(t, change.Revision, revision)
		} else {
			require.Greater(t, change.Revision, revision)
		}
		for _, d := range change.Documents {
			require.LessOrEqual(t, d.Revision, change.Revision)
			require.GreaterOrEqual(t, d.Revision, versions[d.Name], "document %q", d.Name)
			require.True(t, change.Complete || d.Revision > revision, "document %q is no news", d.Name)
			versions[d.Name] = d.Revision
		}
		revision = change.Revision
	}
}
