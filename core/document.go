package core

import (
	"cmp"
	"crypto/sha256"
	"errors"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

// document is a rule document of a source: what the source holds now, and what
// of it is in force. The two differ when what it holds now cannot be applied.
type document struct {
	source *followed
	name   string

	held    version
	inForce version
	part    part // its rules in force

	problem  error // why held is not in force; nil when it is
	reported bool  // what is wrong with held is known to the operator

	rejected bool // and was, since it was in force as a whole

	conflict   error  // see ruleBook.conflict; nil until somebody asks
	conflictAt uint64 // the revision of the rule book that it speaks of
}

// version is one version of a document.
type version struct {
	revision int64
	created  int64 // 0 where the source does not tell
	digest   [sha256.Size]byte
	rules    rules.Set
	gone     bool  // the source has the document no longer
	err      error // why there are no rules: not readable, or not sound
	at       clock.Instant
}

func newDocument(source *followed, name string) *document {
	d := &document{source: source, name: name}
	d.part.document = d
	return d
}

// compare orders documents by source and name.
func (d *document) compare(other *document) int {
	return cmp.Or(cmp.Compare(d.source.index, other.source.index), cmp.Compare(d.name, other.name))
}

// hold takes note of what the source holds now.
func (d *document) hold(found Document) {
	next := version{revision: found.Revision, created: found.Created, digest: sha256.Sum256(found.Data), err: found.Err}
	if next.err == nil && next.digest == d.held.digest || sameError(next.err, d.held.err) {
		// The same again, under another revision perhaps: neither read nor
		// reported a second time.
		d.held.revision, d.held.created = next.revision, next.created
		return
	}
	if next.err != nil {
		next.digest = [sha256.Size]byte{} // nothing was read
	} else {
		next.rules, next.err = rules.Parse(d.name, found.Data)
	}
	d.held, d.reported = next, false
}

// remove takes note that the source has the document no longer.
func (d *document) remove() { d.held, d.reported = version{gone: true}, false }

// obstacle returns what keeps the version held from being in force, whatever else
// is; nil if nothing does.
func (d *document) obstacle() error {
	if d.held.err != nil {
		return d.held.err
	}
	if back := d.source.heldBack; back != nil && (d.held.gone || d.held.digest != d.inForce.digest) {
		return back
	}
	return nil
}

// rejection adds what is wrong with what the source holds of the document, if the
// operator does not know of it yet.
func (d *document) rejection(c *change, to []Rejection) []Rejection {
	why := cmp.Or(d.problem, d.engine().rules.conflict(d))
	if heldBack := (*HeldBackError)(nil); errors.As(why, &heldBack) {
		return d.source.reportHeldBack(to)
	}
	_, lost := c.losers[d]
	delete(c.losers, d)
	if why == nil || d.reported && !lost {
		return to
	}
	d.reported, d.rejected = true, true
	return append(to, Rejection{d.source.name, d.name, d.held.revision, why})
}

func (d *document) engine() *Engine { return d.source.engine }

func sameError(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

// apply notes that what the source holds is in force since now, if it was not
// before.
func (d *document) apply(now clock.Instant) {
	delete(d.source.pending, d)
	if d.held.gone {
		delete(d.source.documents, d.name)
	}
	at := d.inForce.at
	if at == 0 || d.inForce.digest != d.held.digest {
		at = now
	}
	d.source.rules += d.held.rules.Len() - d.inForce.rules.Len()
	d.inForce = d.held
	d.inForce.at = at
	d.problem, d.conflict = nil, nil
}
