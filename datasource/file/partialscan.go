package file

import (
	"io/fs"
	"os"

	"github.com/penstock-go/penstock/clock"
)

const (
	// many is the number of documents above which a poll of an unchanged directory
	// checks only a part of them. A part has at least that many documents.
	partialScanAbove = 250

	// parts is the largest number of polls until every document was checked.
	scanParts = 16
)

// location is the name of a document and the path of its file.
type location struct{ name, path string }

// planPartialScan decides after a complete scan whether the next polls may check only a part
// of the documents: there are many, everything found is delivered, and coarse
// modification times cannot hide a change. Files that are created, removed or
// replaced change the times of the directory.
func (f *follower) planPartialScan(present map[string]*fileState, now clock.Instant) {
	f.partial = nil
	stable := f.unstablePolls == 0 && f.connected && len(present) > f.source.partialScanAbove && len(present) == len(f.delivered) &&
		now.Sub(f.selfSince) >= coarsestTime
	if !stable {
		return
	}
	partial := make([]location, 0, len(present))
	for name, file := range present {
		unchanged := file.info == nil || now.Sub(file.since) >= coarsestTime
		if !unchanged || file.unstablePolls != 0 || !f.hasDelivered(name, file.version) {
			return
		}
		partial = append(partial, location{name, f.source.join(name)})
	}
	f.partial, f.nextInPartial = partial, 0
}

// unchangedInPart checks the directory and the next part of the documents. It returns whether
// they are unchanged; false if a complete scan is needed.
func (f *follower) unchangedInPart(now clock.Instant) bool {
	if len(f.partial) == 0 {
		return false
	}
	self, err := os.Stat(f.source.path)
	if err != nil || !sameState(self, f.self) {
		return false
	}
	for range min(max(f.source.partialScanAbove, (len(f.partial)+scanParts-1)/scanParts), len(f.partial)) {
		at := f.partial[f.nextInPartial]
		f.nextInPartial = (f.nextInPartial + 1) % len(f.partial)
		file, before := f.find(at.name, at.path, now), f.previous[at.name]
		asFaulty := file != nil && file.info == nil && file.version == before.version
		if file != before && !asFaulty {
			return false
		}
	}
	return true
}

// sameState reports whether identity, size and times of a file or a directory are
// the same.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changeTime(a) == changeTime(b)
}
