package file

import (
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/clock"
)

const (
	// many is how many documents are looked at in any case at each look. Where there
	// are more it is a part of them, for as long as nothing shows that any has
	// changed.
	many = 250

	// parts is how many looks it takes at most until each was looked at.
	parts = 16
)

// place is where a document is.
type place struct{ name, path string }

// watch notes after a look at all documents whether the next looks may be at parts
// of them: there are many, all that was found is delivered, and no change can be
// hidden by coarse times. What is created, removed or replaced shows in the times
// of the directory.
func (f *follower) watch(present map[string]*found, now clock.Instant) {
	f.watched = nil
	atRest := f.held == 0 && f.connected && len(present) > f.source.many && len(present) == len(f.delivered) &&
		now.Sub(f.selfSince) >= coarsest
	if !atRest {
		return
	}
	watched := make([]place, 0, len(present))
	for name, file := range present {
		settled := file.info == nil || now.Sub(file.since) >= coarsest
		if !settled || file.unrest != 0 || !f.has(name, file.version) {
			return
		}
		watched = append(watched, place{name, f.source.join(name)})
	}
	f.watched, f.next = watched, 0
}

// calm looks at the directory and at the next part of the documents, and tells
// whether nothing has changed there.
func (f *follower) calm(now clock.Instant) bool {
	if len(f.watched) == 0 {
		return false
	}
	self, err := os.Stat(f.source.path)
	if err != nil || !sameState(self, f.self) {
		return false
	}
	for range min(max(f.source.many, (len(f.watched)+parts-1)/parts), len(f.watched)) {
		at := f.watched[f.next]
		f.next = (f.next + 1) % len(f.watched)
		file, before := f.find(at.name, at.path, now), f.previous[at.name]
		asFaulty := file != nil && file.info == nil && file.version == before.version
		if file != before && !asFaulty {
			return false
		}
	}
	return true
}

// sameState tells whether nothing shows that a file was written or replaced, or
// that a directory has other entries.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changed(a) == changed(b)
}
