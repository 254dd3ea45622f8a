package sourcetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// Patience is how long a test waits for something that has to happen. Only a test that
// fails takes that long.
const Patience = 2 * time.Minute

// Recorder is a [core.Sink] that keeps the documents as an engine does, and everything that
// it received. The zero value is ready to use. Its methods may be called concurrently.
type Recorder struct {
	busy     atomic.Bool   // Apply or Disconnected is running
	patience time.Duration // Defaults to Patience

	mu         sync.Mutex // guards the fields below
	changes    []core.Change
	documents  map[string]string
	faulty     map[string]error
	errs       []error
	connected  bool
	violations []string
	changed    chan struct{} // closed when something above changes; nil if nobody waits
}

var _ core.Sink = (*Recorder)(nil)

// Follow runs a source until the test ends, and then fails the test if Run has not
// returned the error of its context, or if the source has broken the contract of
// [core.Sink].
func Follow(t *testing.T, source core.Source) *Recorder {
	t.Helper()
	r := &Recorder{}
	t.Cleanup(r.follow(t, source))
	return r
}

// follow runs a source until stop is called.
func (r *Recorder) follow(t *testing.T, source core.Source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, r) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled, "what Run returns when its context has ended")
		case <-time.After(r.timeout()):
			require.FailNow(t, "Run does not return although its context has ended")
		}
		require.Empty(t, r.Violations(), "the contract of core.Sink")
	}
}

func (r *Recorder) timeout() time.Duration { return cmp.Or(r.patience, Patience) }

// Apply implements [core.Sink].
func (r *Recorder) Apply(change core.Change) {
	defer r.enter("Apply")()
	r.check(change)
	if change.Complete || r.documents == nil {
		r.documents, r.faulty = map[string]string{}, map[string]error{}
	}
	for _, d := range change.Documents {
		if d.Err != nil {
			r.faulty[d.Name] = d.Err
			continue
		}
		r.documents[d.Name] = string(d.Data)
		delete(r.faulty, d.Name)
	}
	for _, name := range change.Removed {
		delete(r.documents, name)
		delete(r.faulty, name)
	}
	change.Documents = slices.Clone(change.Documents)
	for i, d := range change.Documents {
		change.Documents[i].Data = slices.Clone(d.Data) // the source may use it again
	}
	r.changes = append(r.changes, change)
	r.connected = true
}

// Disconnected implements [core.Sink].
func (r *Recorder) Disconnected(err error) {
	defer r.enter("Disconnected")()
	if err == nil {
		r.violate("Disconnected without an error")
		err = errors.New("none")
	}
	r.errs = append(r.errs, err)
	r.connected = false
}

// Status implements [core.Sink].
func (r *Recorder) Status() core.SourceStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := core.SourceStatus{Ready: len(r.changes) > 0, Connected: r.connected}
	if !r.connected && len(r.errs) > 0 {
		status.Err = r.errs[len(r.errs)-1]
	}
	return status
}

// Document implements [core.Sink].
func (r *Recorder) Document(name string) (core.DocumentStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, ok := r.documents[name]
	fault := r.faulty[name]
	if !ok && fault == nil {
		return core.DocumentStatus{}, false
	}
	return core.DocumentStatus{Name: name, Digest: sha256.Sum256([]byte(text)), Rejected: fault}, true
}

// enter begins a call of the source. It returns the end.
func (r *Recorder) enter(method string) (leave func()) {
	alone := r.busy.CompareAndSwap(false, true)
	runtime.Gosched() // so that another call, if there is one, begins before this one ends
	r.mu.Lock()
	if !alone {
		r.violate("%s is called while another call runs", method)
	}
	return func() {
		if r.changed != nil {
			close(r.changed)
			r.changed = nil
		}
		r.busy.Store(false)
		r.mu.Unlock()
	}
}

// check notes how a change breaks the contract. The caller holds mu.
func (r *Recorder) check(change core.Change) {
	if len(r.changes) == 0 && !change.Complete {
		r.violate("the first change is not Complete")
	}
	names := map[string]bool{}
	for _, d := range change.Documents {
		if d.Name == "" || names[d.Name] {
			r.violate("a change has no name for a document, or twice the name %q", d.Name)
		}
		names[d.Name] = true
	}
	for _, name := range change.Removed {
		if names[name] {
			r.violate("a change has %q both among its documents and among those that are gone", name)
		}
	}
}

func (r *Recorder) violate(format string, args ...any) {
	r.violations = append(r.violations, fmt.Sprintf(format, args...))
}

// Violations returns how the source has broken the contract of [core.Sink].
func (r *Recorder) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.violations)
}

// Changes returns the changes so far.
func (r *Recorder) Changes() []core.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

// Errors returns the reasons for which the source was not connected, so far.
func (r *Recorder) Errors() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errs)
}

// Documents returns the last good version of each document.
func (r *Recorder) Documents() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.documents)
}

// Fault returns the error that a document has now; nil if it has none.
func (r *Recorder) Fault(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faulty[name]
}

// History returns the contents that a document has had, one after the other.
func (r *Recorder) History(name string) (contents []string) {
	for _, change := range r.Changes() {
		for _, d := range change.Documents {
			content := string(d.Data)
			if d.Name == name && d.Err == nil && (len(contents) == 0 || contents[len(contents)-1] != content) {
				contents = append(contents, content)
			}
		}
	}
	return contents
}

// AwaitDocuments waits until the source is connected and these are its documents.
func (r *Recorder) AwaitDocuments(t testing.TB, want map[string]string) {
	t.Helper()
	if !r.await(func() bool { return r.connected && maps.Equal(r.documents, want) }) {
		require.Equal(t, want, r.Documents(), "documents after %v", r.timeout())
		require.FailNowf(t, "the source is not connected", "after %v: %v", r.timeout(), r.Errors())
	}
}

// AwaitFault waits until a document has an error, and returns it.
func (r *Recorder) AwaitFault(t testing.TB, name string) (fault error) {
	t.Helper()
	if !r.await(func() bool { fault = r.faulty[name]; return fault != nil }) {
		require.FailNowf(t, "the document is not reported as faulty", "%q after %v", name, r.timeout())
	}
	return fault
}

// AwaitError waits until the source has reported an error that matches, now or before.
func (r *Recorder) AwaitError(t testing.TB, matches func(error) bool) {
	t.Helper()
	if !r.await(func() bool { return slices.ContainsFunc(r.errs, matches) }) {
		require.FailNowf(t, "the source does not report the error", "after %v: %v", r.timeout(), r.Errors())
	}
}

// AwaitDisconnected waits until the source has reported that it cannot be read now.
func (r *Recorder) AwaitDisconnected(t testing.TB) {
	t.Helper()
	if !r.await(func() bool { return !r.connected && len(r.errs) > 0 }) {
		require.FailNowf(t, "the source does not report that it cannot be read", "after %v", r.timeout())
	}
}

// await waits until a condition holds, which is called with mu held. It returns false if
// that took too long.
func (r *Recorder) await(holds func() bool) bool {
	late := time.NewTimer(r.timeout())
	defer late.Stop()
	for {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		held, changed := holds(), r.changed
		r.mu.Unlock()
		if held {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}
