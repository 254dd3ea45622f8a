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
	// coarsest is the coarsest modification time that file systems keep: a file
	// may change without a trace for as long after it was first seen.
	coarsest = 2 * time.Second

	// maxHeld is for how many looks a change waits for the path to come to rest.
	maxHeld = 8
)

// follower is one run of a source. It belongs to the goroutine of Run.
type follower struct {
	source *Source
	sink   core.Sink

	self      fs.FileInfo        // the path at the last look that succeeded
	selfSince clock.Instant      // when it was first found like that
	previous  map[string]*found  // what that look found; nil before
	delivered map[string]version // what the sink has; nil before it has anything
	held      int                // for how many looks a change has been waiting
	connected bool               // the sink was not told otherwise since it had something
	watched   []place            // the documents while it is enough to look at a part of them; else empty
	next      int                // the first of them for the next look
}

// look looks at the path once and delivers what came to rest. The error is why
// the path cannot be read.
func (f *follower) look() error {
	now := f.source.opts.Clock.Now()
	if f.calm(now) {
		return nil
	}
	present, err := f.scan(now)
	if err != nil {
		f.connected = false
		f.watched = nil
		return err
	}
	if f.previous == nil && !f.recent(present, now) {
		f.previous = present
	}
	if atRest := f.compare(present); atRest {
		f.held = 0
	} else {
		f.held++
	}
	if f.held == 0 || f.held > maxHeld {
		f.deliver(present)
	}
	for _, file := range present {
		file.data = nil
	}
	f.previous = present
	f.watch(present, now)
	return nil
}

// scan returns the files that there are.
func (f *follower) scan(now clock.Instant) (map[string]*found, error) {
	self, err := os.Stat(f.source.path)
	if err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}
	paths, err := f.source.paths(self)
	if err != nil {
		return nil, err
	}
	present := make(map[string]*found, len(paths))
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

// find returns the file, read unless it is known for sure to be what it was;
// nil if it is gone.
func (f *follower) find(name, path string, now clock.Instant) *found {
	file, before := stat(path), f.previous[name]
	if file == nil || file.fault != "" {
		return file
	}
	if before != nil && before.sameFile(file) && before.version == f.delivered[name] &&
		now.Sub(before.since) >= coarsest {
		return before
	}
	if file = read(path); file == nil {
		return nil
	}
	file.since = now
	if before != nil && before.sameFile(file) {
		file.since = before.since
	}
	return file
}

// recent tells whether a file may just be being written.
func (f *follower) recent(present map[string]*found, now clock.Instant) bool {
	for _, file := range present {
		if file.info != nil && now.Time().Sub(file.info.ModTime()) <= f.source.opts.Interval {
			return true
		}
	}
	return false
}
