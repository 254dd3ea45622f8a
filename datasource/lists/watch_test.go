package lists_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a watch of a source that the test plays.
type fixture struct {
	t        *testing.T
	clock    *clock.Virtual
	registry *list.Registry
	watch    *lists.Watch
	log      bytes.Buffer

	changes chan func(core.Sink)

	mu    sync.Mutex                      // guards the fields below
	texts map[string]func() io.ReadCloser // by document
	opens int
}

// Name implements [core.Source].
func (*fixture) Name() string { return "test:" }

// Run implements [core.Source].
func (f *fixture) Run(ctx context.Context, sink core.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-f.changes:
			change(sink)
		}
	}
}

// watch runs do with a watch on a source that has delivered nothing.
func watch(t *testing.T, do func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			t: t, clock: clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)), registry: list.NewRegistry(),
			changes: make(chan func(core.Sink)), texts: make(map[string]func() io.ReadCloser),
		}
		var err error
		f.watch, err = lists.Start(t.Context(), lists.Config{
			Registry: f.registry, Source: f, Open: f.open, Clock: f.clock, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
			MinRetry: time.Second, MaxRetry: 8 * time.Second,
		})
		require.NoError(t, err)
		do(t, f)
		f.watch.Close()
		require.Zero(t, f.clock.Timers())
	})
}

// open implements Config.Open.
func (f *fixture) open(_ context.Context, document lists.Document) (lists.Text, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	text := f.texts[document.Name]
	if text == nil {
		return lists.Text{}, errors.New("test: it is not there, attempt 1")
	}
	return lists.Text{ReadCloser: text(), Digest: document.Digest}, nil
}

// opened returns how often texts were opened.
func (f *fixture) opened() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opens
}

// holds makes a document have a text, or none for "".
func (f *fixture) holds(name, text string) {
	f.holdsReader(name, func() io.ReadCloser { return io.NopCloser(strings.NewReader(text)) })
	if text == "" {
		f.holdsReader(name, nil)
	}
}

func (f *fixture) holdsReader(name string, text func() io.ReadCloser) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts[name] = text
}

// document returns a document that contains the digest of a text.
func document(name, text string) core.Document {
	sum := sha256.Sum256([]byte(text))
	return core.Document{Name: name, Data: sum[:]}
}

// apply delivers a change, and returns when nothing more happens before time goes on.
func (f *fixture) apply(change core.Change) {
	f.changes <- func(sink core.Sink) { sink.Apply(change) }
	synctest.Wait()
}

// deliver delivers a document with the digest of a text.
func (f *fixture) deliver(name, text string) {
	f.apply(core.Change{Documents: []core.Document{document(name, text)}})
}

// put makes a document have a text and delivers it.
func (f *fixture) put(name, text string) {
	f.holds(name, text)
	f.deliver(name, text)
}

func (f *fixture) advance(d time.Duration) {
	f.clock.Advance(d)
	synctest.Wait()
}

// has returns whether the list in force has the text.
func (f *fixture) has(name, text string) bool {
	l := f.registry.Get(name)
	return l != nil && l.ContainsText(text)
}

// err returns why the present version of a list is not in force.
func (f *fixture) err(name string) error {
	for _, s := range f.registry.Status() {
		if s.Name == name {
			return s.Err
		}
	}
	return nil
}

func TestTextThatCannotBeReadIsTriedAgainWithGrowingPauses(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.put("l", "a\n")
		f.holds("l", "")
		f.deliver("l", "b\n")
		require.ErrorContains(t, f.err("l"), "it is not there")
		assert.True(t, f.has("l", "a"))
		for _, pause := range []time.Duration{1, 2, 4, 8, 8} {
			before := f.opened()
			f.advance(pause*time.Second/2 - 1)
			require.Equal(t, before, f.opened(), "too early")
			f.advance(pause*time.Second/2 + 1)
			require.Equal(t, before+1, f.opened())
		}
		assert.Equal(t, 1, strings.Count(f.log.String(), "it is not there"), "it is logged once")
		f.holds("l", "b\n")
		f.advance(8 * time.Second)
		assert.True(t, f.has("l", "b"))
		require.NoError(t, f.err("l"))
	})
}

func TestFailedListIsReadAtOnceWhenTheSourceIsReadAgain(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.apply(core.Change{Complete: true, Documents: []core.Document{document("l", "a\n")}})
		f.advance(time.Minute)
		require.Error(t, f.err("l"))
		f.holds("l", "a\n")
		before := f.opened()
		f.changes <- func(sink core.Sink) { sink.Disconnected(errors.New("test: lost")) }
		f.apply(core.Change{Complete: true, Documents: []core.Document{document("l", "a\n")}})
		assert.Equal(t, before+1, f.opened())
		assert.True(t, f.has("l", "a"))
	})
}

func TestTextWithAnotherDigestIsNotPutInForce(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.put("l", "a\n")
		f.holds("l", "b\n")
		f.deliver("l", "c\n")
		require.ErrorContains(t, f.err("l"), "SHA-256")
		assert.True(t, f.has("l", "a"))
		assert.False(t, f.has("l", "b"))
		f.holds("l", "c\n")
		f.advance(time.Second)
		assert.True(t, f.has("l", "c"))
	})
}

// A part of a text may have mistakes that the whole does not have, and the reverse.
func TestMistakesInATextWithAnotherDigestAreNotFinal(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.holds("l", strings.Repeat("x", 1<<20))
		f.deliver("l", "c\n")
		require.ErrorContains(t, f.err("l"), "SHA-256")
		f.holds("l", "c\n")
		f.advance(time.Second)
		assert.True(t, f.has("l", "c"))
	})
}

func TestTextThatBreaksOffIsNotPutInForce(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.put("l", "a\n")
		f.holdsReader("l", func() io.ReadCloser {
			return io.NopCloser(io.MultiReader(strings.NewReader("b\n"), failing{}))
		})
		f.deliver("l", "b\nc\n")
		require.ErrorContains(t, f.err("l"), "connection reset")
		assert.True(t, f.has("l", "a"))
		f.holds("l", "b\nc\n")
		f.advance(time.Second)
		assert.True(t, f.has("l", "c"))
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("test: connection reset") }

func TestDocumentThatIsDeliveredAgainIsNotReadAgain(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.put("l", "a\n")
		since := f.registry.Status()[0].Since
		f.advance(time.Second)
		f.deliver("l", "a\n")
		f.apply(core.Change{Complete: true, Documents: []core.Document{document("l", "a\n")}})
		assert.Equal(t, 1, f.opened())
		assert.Equal(t, since, f.registry.Status()[0].Since)
	})
}

func TestListThatGoesWhileItIsBuiltIsNotPutInForce(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		blocked, release := io.Pipe()
		f.holdsReader("l", func() io.ReadCloser { return blocked })
		f.deliver("l", "a\n")
		f.apply(core.Change{Removed: []string{"l"}})
		_, err := release.Write([]byte("a\n"))
		require.NoError(t, err)
		require.NoError(t, release.Close())
		synctest.Wait()
		assert.Empty(t, f.registry.Status())
		assert.Nil(t, f.registry.Get("l"))
	})
}

func TestVersionThatComesWhileAnotherIsBuiltFollowsIt(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		blocked, release := io.Pipe()
		f.holdsReader("l", func() io.ReadCloser { return blocked })
		f.deliver("l", "a\n")
		f.put("l", "b\n")
		assert.Equal(t, 1, f.opened(), "one list is built at a time")
		_, err := release.Write([]byte("a\n"))
		require.NoError(t, err)
		require.NoError(t, release.Close())
		synctest.Wait()
		assert.True(t, f.has("l", "b"))
		assert.Equal(t, 2, f.opened())
	})
}

func TestVersionThatIsTakenBackWhileItIsBuiltIsNotPutInForce(t *testing.T) {
	for name, then := range map[string]core.Document{
		"the one in force is back": document("l", "a\n"),
		"it cannot be read":        {Name: "l", Err: errors.New("test: faulty")},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, func(t *testing.T, f *fixture) {
				f.put("l", "a\n")
				blocked, release := io.Pipe()
				f.holdsReader("l", func() io.ReadCloser { return blocked })
				f.deliver("l", "b\n")
				f.apply(core.Change{Documents: []core.Document{then}})
				_, err := release.Write([]byte("b\n"))
				require.NoError(t, err)
				require.NoError(t, release.Close())
				synctest.Wait()
				assert.True(t, f.has("l", "a"))
				assert.Equal(t, then.Err, f.err("l"))
				f.advance(time.Hour)
				assert.Equal(t, 2, f.opened())
			})
		})
	}
}

func TestCloseAbandonsTheListThatIsBeingRead(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.holdsReader("l", func() io.ReadCloser { return io.NopCloser(endless{}) })
		f.changes <- func(sink core.Sink) {
			sink.Apply(core.Change{Complete: true, Documents: []core.Document{document("l", "a\n")}})
		}
		f.watch.Close()
		assert.Nil(t, f.registry.Get("l"))
		require.ErrorIs(t, f.watch.Ready(t.Context()), lists.ErrClosed)
	})
}

// endless is a text of comments that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, "# more\n"), nil
}

func TestReadyWaitsForWhatCanBeReadOnly(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.holds("bad", strings.Repeat("x", 1<<20))
		f.holds("good", "a\n")
		f.apply(core.Change{Complete: true, Documents: []core.Document{
			document("bad", strings.Repeat("x", 1<<20)),
			document("good", "a\n"),
			{Name: "faulty", Err: errors.New("test: faulty")},
			document("away", "b\n"),
		}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := f.watch.Ready(ctx)
		require.ErrorContains(t, err, `list "away" cannot be read: test: it is not there`)
		require.NotContains(t, err.Error(), "bad")
		f.holds("away", "b\n")
		f.advance(time.Second)
		require.NoError(t, f.watch.Ready(t.Context()))
		assert.Equal(t, []string{"away", "good"}, f.registry.Names())
	})
}

func TestCompleteReadRemovesListsThatAreGone(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.put("a", "a\n")
		f.put("b", "b\n")
		f.apply(core.Change{Complete: true, Documents: []core.Document{document("b", "b\n")}})
		assert.Equal(t, []string{"b"}, f.registry.Names())
	})
}

func TestDocumentWithoutADigestOrWithABadNameIsReported(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		f.apply(core.Change{Complete: true, Documents: []core.Document{{Name: "l", Data: []byte("x")}, document("a/b", "a\n")}})
		require.ErrorContains(t, f.err("l"), "does not contain a SHA-256")
		require.ErrorContains(t, f.err("a/b"), "slashes")
		require.NoError(t, f.watch.Ready(t.Context()))
	})
}

func TestListsOfTwoSourcesAreInForceByTheNameOfTheSource(t *testing.T) {
	watch(t, func(t *testing.T, f *fixture) {
		other := list.Provider{Source: "another", Document: "l"}
		f.put("l", "a\n")
		b := list.Builder{}
		require.NoError(t, b.AddText("b"))
		another, err := b.Build(t.Context())
		require.NoError(t, err)
		assert.True(t, f.registry.Put("l", other, list.Version{List: another}))
		assert.True(t, f.has("l", "b"))
		f.put("l", "c\n")
		assert.True(t, f.has("l", "b"), "it waits")
		assert.Contains(t, f.log.String(), "list waits")
		f.registry.Withdraw("l", other)
		assert.True(t, f.has("l", "c"))
	})
}

func TestStartNamesAllMistakesOfTheConfiguration(t *testing.T) {
	_, err := lists.Start(t.Context(), lists.Config{MinRetry: -1})
	require.ErrorContains(t, err, "the registry is nil")
	require.ErrorContains(t, err, "Config.Source and Config.Open are required")
	require.ErrorContains(t, err, "must not be negative")
}

// endedSource ends at once.
type endedSource struct{ err error }

func (endedSource) Name() string                           { return "ended" }
func (s endedSource) Run(context.Context, core.Sink) error { return s.err }

func TestSourceThatHasEndedIsInTheStatus(t *testing.T) {
	for err, want := range map[error]string{
		nil:                "lists: the source has ended",
		errors.New("full"): "lists: the source has ended: full",
	} {
		synctest.Test(t, func(t *testing.T) {
			w, startErr := lists.Start(t.Context(), lists.Config{
				Registry: list.NewRegistry(), Source: endedSource{err}, Open: new(fixture).open, Logger: slog.New(slog.DiscardHandler),
			})
			require.NoError(t, startErr)
			defer w.Close()
			synctest.Wait()
			require.EqualError(t, w.Status().Err, want)
			require.False(t, w.Status().Connected)
		})
	}
}

func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestManifestIsTheDigestAndWhetherRemovalsAreConfirmed(t *testing.T) {
	digest := lists.Digest(sha256.Sum256([]byte("10.0.0.0/8")))
	assert.Equal(t, digest[:], lists.Manifest(digest, false))
	assert.Equal(t, append(digest[:], 1), lists.Manifest(digest, true))
}
