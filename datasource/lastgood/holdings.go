package lastgood

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// holdings are the bytes of every version of a document that is in force or may
// come to be, by the document's name.
//
// A version that is not in force when it is delivered may be so later: when
// another source gives up the name of a rule, or when an operator confirms. So
// of each document there are at most two versions between two changes: the one in
// force, and the one that the source holds.
type holdings map[string]*document

// document is what there is of one document.
type document struct {
	versions []version
	held     bool // the source holds the last of the versions
}

type version struct {
	digest digest
	data   []byte
}

type digest = [sha256.Size]byte

// take takes up what a change brings, before the engine does: nothing that was
// held is dropped, whether it is in force or not is only known afterwards.
func (h holdings) take(change core.Change) {
	if change.Complete {
		for _, d := range h {
			d.held = false
		}
	}
	for _, found := range change.Documents {
		d := h[found.Name]
		if d == nil {
			d = new(document)
			h[found.Name] = d
		}
		if d.held = found.Err == nil; d.held {
			d.take(found.Data)
		}
	}
	for _, name := range change.Removed {
		if d := h[name]; d != nil {
			d.held = false
		}
	}
}

// take puts a version last.
func (d *document) take(data []byte) {
	sum := sha256.Sum256(data)
	at := slices.IndexFunc(d.versions, func(v version) bool { return v.digest == sum })
	if at < 0 {
		d.versions = append(d.versions, version{sum, bytes.Clone(data)})
		return
	}
	v := d.versions[at]
	d.versions = append(slices.Delete(d.versions, at, at+1), v)
}

// settle drops what is neither in force nor held by the source. It returns
// whether the two differ anywhere: what is in force may then change without a word
// of the source.
func (h holdings) settle(status core.SourceStatus) (unsettled bool) {
	inForce := make(map[string]digest, len(status.Documents))
	for _, d := range status.Documents {
		inForce[d.Name] = d.Digest
	}
	for name := range h {
		unsettled = h.settleDocument(name, inForce[name]) || unsettled
	}
	return unsettled
}

// settleDocument is settle for one document. The version in force is none if the
// engine has none, or does not know the document.
func (h holdings) settleDocument(name string, inForce digest) (unsettled bool) {
	d := h[name]
	if d == nil {
		return false
	}
	last := len(d.versions) - 1
	if d.held && last == 0 && d.versions[0].digest == inForce {
		return false // as it mostly is
	}
	var latest digest
	if d.held {
		latest = d.versions[last].digest
	}
	d.versions = slices.DeleteFunc(d.versions, func(v version) bool {
		return v.digest != inForce && v.digest != latest
	})
	if len(d.versions) == 0 {
		delete(h, name)
	}
	return true
}

// inForce returns the documents that are in force according to the status.
func (h holdings) inForce(status core.SourceStatus) ([]core.Document, error) {
	documents := make([]core.Document, 0, len(status.Documents))
	for _, s := range status.Documents {
		if s.AppliedAt == 0 {
			continue // nothing of it ever was
		}
		data, ok := h[s.Name].find(s.Digest)
		if !ok {
			return nil, fmt.Errorf("lastgood: what is in force of %q was not delivered to this source", s.Name)
		}
		documents = append(documents, core.Document{Name: s.Name, Revision: s.Revision, Created: s.Created, Data: data})
	}
	return documents, nil
}

// find returns the bytes with that digest.
func (d *document) find(sum digest) ([]byte, bool) {
	if d == nil {
		return nil, false
	}
	for _, v := range d.versions {
		if v.digest == sum {
			return v.data, true
		}
	}
	return nil, false
}
