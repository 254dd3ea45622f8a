package lists

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/internal/copyfile"
)

const (
	copySuffix    = ".copy"
	maxCopyFiles  = 10_000           // of a directory that are looked at
	sourceTimeout = 2 * time.Second  // until the copies stand in for a source that says nothing
	copyInterval  = time.Hour        // how old the time of a copy may get while the source can be read
	minRecopy     = time.Minute      // until a copy that could not be written is tried again
	maxRecopy     = 30 * time.Minute // the longest pause
)

// copies keeps the copies of a watch. One goroutine writes them.
type copies struct {
	*Watch
	known chan struct{} // closed when it is known which copies there are
	work  chan struct{} // has an element when there may be something to do
	ended chan struct{} // closed when no list is built any more

	stored  map[string]storedCopy // by document; mu of the watch guards it, and the next
	cleaned map[string]bool       // documents of which nothing is left that a killed process was writing
	logged  string                // the error that was logged last
}

// run keeps the copies until no list is built any more.
func (c *copies) run(ctx context.Context) {
	c.find()
	silent, tick := c.config.Clock.NewTimer(sourceTimeout), c.config.Clock.NewTimer(copyInterval)
	defer silent.Stop()
	defer tick.Stop()
	for {
		changed := c.config.Registry.Changed()
		c.keep()
		select {
		case <-c.ended:
			c.keep()
			c.discardDrafts()
			return
		case <-silent.C():
			c.setSilent(ctx)
		case <-tick.C():
			c.touch()
			tick.Reset(copyInterval)
		case <-changed:
		case <-c.work:
		}
	}
}

// setSilent notes that the source has had its time.
func (c *copies) setSilent(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.silent = true
		c.notify()
	}
}

// find makes the directory, and reads which copies there are.
func (c *copies) find() {
	defer close(c.known)
	err := os.Mkdir(c.config.Copies, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		c.logError(fmt.Errorf("lists: making the directory of the copies: %w", err))
		return
	}
	entries, err := os.ReadDir(c.config.Copies)
	if err != nil {
		c.logError(fmt.Errorf("lists: reading the directory of the copies: %w", err))
	}
	looked := 0
	for _, entry := range entries {
		path := filepath.Join(c.config.Copies, entry.Name())
		if !strings.HasSuffix(path, copySuffix) || looked == maxCopyFiles {
			continue
		}
		looked++
		found, err := readCopy(path)
		switch {
		case err != nil:
			c.ignore(path, err)
		case found.Source != c.config.Source.Name():
		case found.App != c.config.App:
			c.ignore(path, fmt.Errorf("it is of the application %q, not of %q", found.App, c.config.App))
		case path != c.path(found.Document):
			c.ignore(path, errors.New("it has another name than it was given"))
		default:
			c.add(found)
		}
	}
}

func (c *copies) ignore(path string, err error) {
	c.config.Logger.Error("penstock: the last good copy of a list cannot be used and is ignored",
		slog.String("source", c.config.Source.Name()), slog.String("path", path), slog.Any("error", err))
}

// add takes note of a copy, which is put in force next.
func (c *copies) add(found storedCopy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[found.Document] = found
	if c.documents[found.Document] != nil || c.read {
		return // the source was faster than the disk
	}
	d := c.newDocument(found.Document)
	d.revision = found.Revision
	if present, ok := c.status(d); ok && present.Since != 0 {
		d.loaded, d.hasVersion = present.Digest, true // of an earlier watch
	} else {
		d.copy = &found
	}
	c.documents[d.name] = d
	c.notify()
}

// path returns where the copy of a document is.
func (c *copies) path(document string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, c.config.ListName(document))
	sum := sha256.Sum256([]byte(c.config.Source.Name() + "\x00" + document))
	return filepath.Join(c.config.Copies, fmt.Sprintf("%.40s-%x%s", name, sum[:8], copySuffix))
}

// begin begins the copy of a version that is about to be read.
func (c *copies) begin(d *document, revision int64, digest Digest) *draft {
	path := c.path(d.name)
	c.mu.Lock()
	if !c.cleaned[d.name] {
		c.cleaned[d.name] = true
		copyfile.RemoveTemp(path)
	}
	most := c.config.MaxCopies
	for document, stored := range c.stored {
		if document != d.name {
			most -= stored.size
		}
	}
	c.mu.Unlock()
	info := copyInfo{App: c.config.App, Source: c.config.Source.Name(), Document: d.name, Revision: revision}
	return begin(path, info, digest, most)
}

// keep writes the copies of versions that have come into force, and removes those of lists
// that are gone.
func (c *copies) keep() {
	ready, gone := c.due()
	for _, d := range ready {
		c.commit(d.name, d.draft)
	}
	for _, stored := range gone {
		if err := os.Remove(stored.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.logError(fmt.Errorf("lists: removing the copy of a list that is gone: %w", err))
		}
	}
}

// dueCopy is a copy of a version in force that is to take its place.
type dueCopy struct {
	name  string
	draft *draft
}

// due returns what is to be written and to be removed.
func (c *copies) due() (ready []dueCopy, gone []storedCopy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.documents {
		present, _ := c.status(d)
		if d.draft != nil && present.Digest == d.draft.digest {
			ready = append(ready, dueCopy{d.name, d.draft})
			d.draft = nil
		}
	}
	for name, d := range c.gone {
		present, ok := c.status(d)
		switch {
		case !ok:
			d.draft.discard()
			delete(c.gone, name)
			if stored, ok := c.stored[name]; ok {
				gone = append(gone, stored)
				delete(c.stored, name)
			}
		case d.draft != nil && present.Digest == d.draft.digest:
			ready = append(ready, dueCopy{name, d.draft})
			d.draft = nil
		}
	}
	return ready, gone
}

// commit puts a copy in its place.
func (c *copies) commit(name string, of *draft) {
	path := c.path(name)
	of.finish()
	err := of.err
	if err == nil {
		if err = os.Rename(of.name, path); err != nil {
			of.discard()
		}
	}
	now := c.config.Clock.Now()
	wall := clock.TimeOf(c.config.Clock, now)
	if err == nil {
		err = errors.Join(os.Chtimes(path, wall, wall), copyfile.SyncDirectory(c.config.Copies))
	}
	c.mu.Lock()
	d := c.documents[name]
	if err == nil {
		c.stored[name] = storedCopy{copyInfo: of.info, path: path, digest: of.digest, size: of.size, at: clock.Instant(wall.UnixNano())}
	}
	if d != nil {
		d.recopy(err != nil && !errors.Is(err, errTooLarge), now)
	}
	c.notify()
	c.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("lists: writing the copy of list %q: %w", c.config.ListName(name), copyfile.WithoutPath(err))
	}
	c.logError(err)
}

// recopy notes when to try to make the copy again, if that has failed.
func (d *document) recopy(failed bool, now clock.Instant) {
	if !failed {
		d.copyDue, d.copyPause = 0, 0
		return
	}
	d.copyPause = min(max(2*d.copyPause, minRecopy), maxRecopy)
	d.copyDue = now.Add(d.copyPause)
}

// touch writes the time of the copies that are still what the source has, and has those
// written again that somebody has removed.
func (c *copies) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Clock.Now()
	wall := clock.TimeOf(c.config.Clock, now)
	for name, stored := range c.stored {
		d := c.documents[name]
		if d == nil || !c.connected || !d.hasVersion || d.loaded != d.wanted {
			continue
		}
		err := os.Chtimes(stored.path, wall, wall)
		if errors.Is(err, fs.ErrNotExist) {
			delete(c.stored, name)
			d.copyDue = now
			c.notify()
		}
	}
}

// discardDrafts removes what has not come into force.
func (c *copies) discardDrafts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.documents {
		d.draft.discard()
	}
	for _, d := range c.gone {
		d.draft.discard()
	}
}

// logError logs an error of the copies once, and later that they are written again.
func (c *copies) logError(err error) {
	var text string
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == c.logged:
	case err != nil:
		c.config.Logger.Warn("penstock: the last good copy of a list cannot be kept, the list is not affected",
			slog.String("source", c.config.Source.Name()), slog.Any("error", err))
	default:
		c.config.Logger.Info("penstock: the last good copies of lists are kept again", slog.String("source", c.config.Source.Name()))
	}
	c.logged = text
}

// awaitCopies waits until it is known which copies there are, but no longer than the source
// has time, so that a disk that hangs does not keep lists away for good.
func (w *Watch) awaitCopies() {
	if w.copies == nil {
		return
	}
	select {
	case <-w.copies.known:
		return
	default:
	}
	timer := w.config.Clock.NewTimer(sourceTimeout)
	defer timer.Stop()
	select {
	case <-w.copies.known:
	case <-timer.C():
	case <-w.ended:
	}
}
