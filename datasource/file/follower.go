package file

import (
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

const (
	// coarsestTime is the coarsest resolution of modification times in file systems. For
	// that long after a file was first seen, a change of it may not show.
	coarsestTime = 2 * time.Second

	// maxUnstablePolls is how many polls a change waits for the path to become stable.
	maxUnstablePolls = 8
)

// follower is the state of one call of [Source.Run]. Only its goroutine uses it.
type follower struct {
	source *source
	sink   core.Sink

	self          fs.FileInfo           // of the path, at the last successful poll
	selfSince     clock.Instant         // when the path was first found like that
	previous      map[string]*fileState // files of the last successful poll; nil before
	delivered     map[string]version    // what the sink has received; nil before the first delivery
	unstablePolls int                   // number of polls that a change has been waiting
	connected     bool                  // something was delivered since the last failure
	partial       []location            // all documents while polls check a part of them; else empty
	nextInPartial int                   // index in watched of the first document for the next poll
}

// poll polls the path once and delivers the changes that are stable. It returns an
// error if the path cannot be read.
func (f *follower) poll() error {
	now := f.source.opts.Clock.Now()
	if f.unchangedInPart(now) {
		return nil
	}
	present, err := f.scan(now)
	if err != nil {
		f.connected = false
		f.partial = nil
		return err
	}
	if f.previous == nil && !f.recentlyModified(present) {
		f.previous = present
	}
	if stable := f.compare(present); stable {
		f.unstablePolls = 0
	} else {
		f.unstablePolls++
	}
	if f.unstablePolls == 0 || f.unstablePolls > maxUnstablePolls {
		f.deliver(present)
	}
	for _, file := range present {
		file.data = nil
	}
	f.previous = present
	f.planPartialScan(present, now)
	return nil
}

// scan returns all documents that are there, by name.
func (f *follower) scan(now clock.Instant) (map[string]*fileState, error) {
	self, err := os.Stat(f.source.path)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	paths, err := f.source.paths(self)
	if err != nil {
		return nil, err
	}
	present := make(map[string]*fileState, len(paths))
	for name, path := range paths {
		if file := f.find(name, path, now); file != nil {
			present[name] = file
		}
	}
	if f.self == nil || !sameState(self, f.self) {
		f.selfSince = now
	}
	known := self.IsDir() && os.SameFile(self, f.self)
	if !known && len(present) == 0 && len(f.delivered) > 0 {
		return nil, fmt.Errorf("file: %s is not what it was and holds no documents: is its file system mounted?", f.source.path)
	}
	f.self = self
	return present, nil
}

// find returns the state of a file; nil if there is none. It reads the file unless it
// looks unchanged and was read lately.
func (f *follower) find(name, path string, now clock.Instant) *fileState {
	file, before := stat(path), f.previous[name]
	if file == nil || file.fault != "" {
		return file
	}
	known := before != nil && before.sameFile(file) && before.version == f.delivered[name] &&
		now.Sub(before.since) >= coarsestTime
	if known && now.Sub(before.read) < f.source.opts.CompareInterval {
		return before
	}
	if file = f.source.format.read(path); file == nil {
		return nil
	}
	if known && file.same(before) {
		before.read = now
		return before
	}
	file.since, file.read = now, now
	if before != nil && before.sameFile(file) {
		file.since = before.since
	}
	return file
}

// recentlyModified reports whether a file was modified within the last interval, so that a
// program may still be writing it.
func (f *follower) recentlyModified(present map[string]*fileState) bool {
	for _, file := range present {
		if file.info != nil && -f.source.opts.Clock.Until(file.info.ModTime()) <= f.source.opts.Interval {
			return true
		}
	}
	return false
}
