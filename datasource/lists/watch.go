package lists

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/retry"
	"github.com/penstock-go/penstock/list"
)

// ErrClosed is returned by [Watch.Ready] when the watch has ended.
var ErrClosed = errors.New("lists: the watch has ended")

// Watch keeps the lists of a source up to date in a registry. [Start] makes it. Its
// methods may be called concurrently.
type Watch struct {
	config  Config
	cancel  context.CancelFunc
	running sync.WaitGroup
	ended   <-chan struct{}
	wake    chan struct{} // has an element when a document may be due
	copies  *copies       // nil if none are kept

	mu        sync.Mutex // guards the fields below
	documents map[string]*document
	read      bool          // the source has delivered all documents once
	connected bool          // the source could be read when last tried
	since     clock.Instant // when connected last changed
	err       error         // why the source is not connected
	changed   chan struct{} // closed and replaced when something above changes

	confirmedAt int64                // last revision at which somebody has confirmed what is held back
	gone        map[string]*document // that are removed, and whose copies are not yet
	silent      bool                 // the source has not said anything in its time
	copied      bool                 // a copy was put in force
}

// document is what is known of a document. The mutex of the watch guards it.
type document struct {
	name     string // of the document
	list     string // name of its list
	revision int64  // of the present version

	confirmed           bool // any number of entries may go with the present version
	present             bool // the source has delivered it
	gone, goneConfirmed bool // it is to be removed once its copy is read

	wanted     Digest // of the present version
	loaded     Digest // of the last good version
	hasVersion bool   // loaded is set

	pending bool          // the present version is to be loaded
	due     clock.Instant // when to load it
	backoff retry.Backoff
	err     error // why the present version is not in force
	logged  error // that was logged last

	copy      *storedCopy   // to be put in force first; nil if none
	draft     *draft        // the copy of the version loaded last, until that is in force
	copyDue   clock.Instant // when to write a copy that has failed; 0 if none has
	copyPause time.Duration
}

// Start follows the source and keeps its lists in the registry until ctx ends or
// [Watch.Close] is called. It returns an error if the configuration is invalid, never
// because of the source.
func Start(ctx context.Context, config Config) (*Watch, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{
		config: config, cancel: cancel, ended: ctx.Done(), wake: make(chan struct{}, 1),
		documents: make(map[string]*document), gone: make(map[string]*document), since: config.Clock.Now(), changed: make(chan struct{}),
	}
	if config.Copies != "" {
		w.copies = &copies{
			Watch: w, known: make(chan struct{}), work: make(chan struct{}, 1), ended: make(chan struct{}),
			stored: make(map[string]storedCopy), cleaned: make(map[string]bool),
		}
		w.running.Go(func() { w.copies.run(ctx) })
	}
	w.running.Go(func() { w.follow(ctx) })
	w.running.Go(func() {
		w.build(ctx)
		if w.copies != nil {
			close(w.copies.ended)
		}
	})
	return w, nil
}

// Close ends the watch and returns when nothing of it runs any longer, which may take
// until the list that is being built is finished. The lists stay in force.
func (w *Watch) Close() {
	w.cancel()
	w.running.Wait()
}

// Ready waits until the source has delivered all documents once and the lists without
// mistakes are in force, or until copies are in force while the source cannot be read. The error is that of ctx, with what is missing and why, or
// [ErrClosed].
func (w *Watch) Ready(ctx context.Context) error {
	for {
		w.mu.Lock()
		missing, changed := w.missing(), w.changed
		w.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("lists: not ready: %s: %w", strings.Join(missing, "; "), ctx.Err())
		case <-w.ended:
			return ErrClosed
		}
	}
}

// missing describes what [Watch.Ready] waits for.
func (w *Watch) missing() []string {
	if onCopies := w.copied && (w.silent || w.err != nil); !w.read && !onCopies {
		return []string{fmt.Sprintf("source %q %s", w.config.Source.Name(), reason(w.err, "has not been read yet"))}
	}
	var missing []string
	for _, d := range w.sorted() {
		if d.pending || d.copy != nil {
			missing = append(missing, fmt.Sprintf("list %q %s", d.list, reason(d.err, "is being read")))
		}
	}
	return missing
}

func reason(err error, without string) string {
	if err == nil {
		return without
	}
	return "cannot be read: " + err.Error()
}

func (w *Watch) sorted() []*document {
	all := make([]*document, 0, len(w.documents))
	for _, d := range w.documents {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *document) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Status says how the source of a watch is. The registry says how its lists are.
type Status struct {
	Source    string        // its name
	Ready     bool          // it has delivered all documents once
	Connected bool          // it could be read when last tried
	Since     clock.Instant // when Connected last changed, or when the watch began
	Err       error         // why it is not connected
}

// Status returns the present status of the source.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Status{Source: w.config.Source.Name(), Ready: w.read, Connected: w.connected, Since: w.since, Err: w.err}
}

// notify wakes those who wait for a change, and the goroutine that builds lists.
func (w *Watch) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if w.copies == nil {
		return
	}
	select {
	case w.copies.work <- struct{}{}:
	default:
	}
}

func (w *Watch) setConnected(connected bool, err error) {
	if w.connected != connected {
		w.since = w.config.Clock.Now()
	}
	w.connected, w.err = connected, err
}

func (w *Watch) provider(d *document) list.Provider {
	return list.Provider{Source: w.config.Source.Name(), Document: d.name}
}

// status returns how the registry has the list of a document; false if it has none.
func (w *Watch) status(d *document) (list.Status, bool) {
	of, from := w.config.Registry.Status(d.list), w.provider(d)
	if i := slices.IndexFunc(of, func(s list.Status) bool { return s.Provider == from }); i >= 0 {
		return of[i], true
	}
	return list.Status{}, false
}

// reject notes why the present version of a document is not in force. It logs an error
// that repeats once.
func (w *Watch) reject(d *document, err error) {
	d.err = err
	w.config.Registry.Judge(d.list, w.provider(d), err, w.config.Clock.Now())
	if retry.Alike(d.logged, err) {
		return
	}
	d.logged = err
	w.config.Logger.Error("penstock: list is not put in force, the last good version stays",
		slog.String("list", d.list), slog.String("source", w.config.Source.Name()), slog.String("document", d.name),
		slog.String("error", logText(err)))
}

// logText returns the text of an error without the entries that mistakes in a list quote,
// which may be secrets.
func logText(err error) string {
	var mistakes *list.Error
	if !errors.As(err, &mistakes) || len(mistakes.Mistakes) == 0 {
		return err.Error()
	}
	first := mistakes.Mistakes[0].Line
	if mistakes.Count == 1 {
		return fmt.Sprintf("list: a mistake in line %d: its status says more", first)
	}
	return fmt.Sprintf("list: %d mistakes, the first one in line %d: its status says more", mistakes.Count, first)
}

// accept notes that the present version of a document is in force.
func (w *Watch) accept(d *document) {
	w.config.Registry.Judge(d.list, w.provider(d), nil, w.config.Clock.Now())
	d.err, d.logged = nil, nil
	d.backoff.Reset()
}
