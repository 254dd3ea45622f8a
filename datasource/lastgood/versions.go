package lastgood

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// versionStore keep, by name of the document, every version of it that is in force or
// may still come into force.
//
// A version that is not in force when it is delivered may be later: when another
// source releases the name of a rule, or when an operator confirms a removal. Between
// two changes there are therefore at most two versions of a document: the one in
// force, and the latest one of the source.
type versionStore map[string]*document

// document is the versions of one document.
type document struct {
	versions []version
	current  bool // the last version is the present one of the source
}

type version struct {
	digest digest
	data   []byte
}

type digest = [sha256.Size]byte

// add adds the documents of a change, before the engine applies it. It drops no
// version, because only afterwards is it known which ones are in force.
func (h versionStore) add(change core.Change) {
	if change.Complete {
		for _, d := range h {
			d.current = false
		}
	}
	for _, found := range change.Documents {
		d := h[found.Name]
		if d == nil {
			d = new(document)
			h[found.Name] = d
		}
		if d.current = found.Err == nil; d.current {
			d.add(found.Data)
		}
	}
	for _, name := range change.Removed {
		if d := h[name]; d != nil {
			d.current = false
		}
	}
}

// add makes data the last version.
func (d *document) add(data []byte) {
	sum := sha256.Sum256(data)
	at := slices.IndexFunc(d.versions, func(v version) bool { return v.digest == sum })
	if at < 0 {
		d.versions = append(d.versions, version{sum, bytes.Clone(data)})
		return
	}
	v := d.versions[at]
	d.versions = append(slices.Delete(d.versions, at, at+1), v)
}

// prune drops the versions that are neither in force nor the latest of the source.
// It returns whether these two differ for any document: the documents in force may
// then change without a change of the source.
func (h versionStore) prune(status core.SourceStatus) (differs bool) {
	inForce := make(map[string]digest, len(status.Documents))
	for _, d := range status.Documents {
		inForce[d.Name] = d.Digest
	}
	for name := range h {
		differs = h.pruneDocument(name, inForce[name]) || differs
	}
	return differs
}

// pruneDocument is prune for one document. inForce is zero if no version of it is
// in force.
func (h versionStore) pruneDocument(name string, inForce digest) (differs bool) {
	d := h[name]
	if d == nil {
		return false
	}
	last := len(d.versions) - 1
	if d.current && last == 0 && d.versions[0].digest == inForce {
		return false // the common case
	}
	var latest digest
	if d.current {
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

// inForce returns the documents that are in force by the status.
func (h versionStore) inForce(status core.SourceStatus) ([]core.Document, error) {
	documents := make([]core.Document, 0, len(status.Documents))
	for _, s := range status.Documents {
		if s.AppliedAt == 0 {
			continue // no version was ever in force
		}
		data, ok := h[s.Name].find(s.Digest)
		if !ok {
			return nil, fmt.Errorf("lastgood: what is in force of %q was not delivered to this source", s.Name)
		}
		documents = append(documents, core.Document{Name: s.Name, Revision: s.Revision, Created: s.Created, Data: data})
	}
	return documents, nil
}

// find returns the bytes of the version with the digest.
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
