package ruleset

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rules"
)

type instant = clock.Instant

// Source is the documents of one source: what it holds now, and what of it is in
// force. The two differ when what it holds now cannot be applied.
type Source struct {
	name      string
	documents map[string]*document
	pending   map[*document]struct{} // that are held back
	revision  int64
	rules     int // that its documents have, in force or waiting
	removals
}

// Delivery says what is new in a source.
type Delivery struct {
	// Complete says that Documents is all there is.
	Complete bool

	Documents []Document
	Removed   []string // names of documents that are gone
	Revision  int64    // of the source as a whole

	// ConfirmedAt is the last revision of the source at which somebody confirmed that
	// rules may go; 0 for none.
	ConfirmedAt int64
}

// Document is a document as a source holds it.
type Document struct {
	Name     string
	Revision int64
	Created  int64
	Data     []byte
	Err      error // why Data could not be read
}

// document is a rule document of a source.
type document struct {
	source *Source
	name   string

	held    version
	inForce version
	group   group // its rules, those in force

	problem  error // why held is not in force; nil when it is
	reported bool  // what is wrong with held was reported
	rejected bool  // it was not in force as a whole when last looked at

	conflict   error // see Book.conflict; nil until it is asked for
	conflictAt uint64
}

// version is one version of a document.
type version struct {
	revision int64
	created  int64 // 0 where the source does not tell
	digest   [sha256.Size]byte
	rules    rules.Set // until they are in force: then the group has them
	count    int       // of the rules
	gone     bool      // the source has the document no longer
	err      error     // why there are no rules: not readable, or not sound
	at       instant

	isApplied bool // the rules are in force, as far as no others have their names
}

// Deliver takes what is new in a source and puts in force what can be.
func (b *Book) Deliver(s *Source, delivery Delivery, now clock.Instant) Outcome {
	changed := b.receive(s, delivery)
	if delivery.Revision < s.revision { // another history: what was confirmed in it before says nothing
		s.accepted = delivery.Revision
	}
	s.confirmed = delivery.ConfirmedAt > s.accepted
	s.revision = delivery.Revision
	return b.apply(s, changed, now)
}

// receive takes note of what the source holds now and returns the documents that that
// concerns.
func (b *Book) receive(s *Source, delivery Delivery) (changed []*document) {
	seen := make(map[string]struct{}, len(delivery.Documents))
	for _, found := range delivery.Documents {
		seen[found.Name] = struct{}{}
		d := s.documents[found.Name]
		if d == nil {
			d = &document{source: s, name: found.Name}
			d.group.document = d
			s.documents[found.Name] = d
		}
		b.receiveDocument(d, found)
		changed = append(changed, d)
	}
	removed := delivery.Removed
	if delivery.Complete {
		removed = slices.Collect(maps.Keys(s.documents))
	}
	for _, name := range removed {
		d := s.documents[name]
		if _, there := seen[name]; d == nil || delivery.Complete && there {
			continue
		}
		d.held, d.reported = version{gone: true}, false
		changed = append(changed, d)
	}
	return changed
}

// receiveDocument takes note of what the source holds now of a document.
func (b *Book) receiveDocument(d *document, found Document) {
	next := version{revision: found.Revision, created: found.Created, digest: sha256.Sum256(found.Data), err: found.Err}
	if next.err == nil && next.digest == d.held.digest && !IsFailure(d.held.err) || sameError(next.err, d.held.err) {
		// The same again, under another revision perhaps: neither read nor
		// reported a second time.
		d.held.revision, d.held.created = next.revision, next.created
		return
	}
	if next.err != nil {
		next.digest = [sha256.Size]byte{} // nothing was read
	} else {
		next.rules, next.err = b.parse(d, found.Data)
		next.count = next.rules.Len()
	}
	d.reported = d.reported && next.digest == d.held.digest && sameError(next.err, d.held.err) // tried again in vain
	d.held = next
}

// parse reads a version of the document. Kinds of the program have a say in that: one that fails makes
// it a version that cannot be put in force.
func (b *Book) parse(d *document, data []byte) (set rules.Set, err error) {
	config := &b.config
	if config.Try == nil {
		return config.Table.Parse(d.name, data)
	}
	var replaced []rules.Replacement
	failure := Guarded(func() {
		if set, err = config.Table.Parse(d.name, data); err == nil {
			replaced = b.parsed(&d.group, set)
		}
	})
	if failure != nil {
		return rules.Set{}, fmt.Errorf("core: a kind of rules %w", failure)
	}
	if err == nil {
		err = config.Try(replaced)
	}
	if err != nil {
		set = rules.Set{}
	}
	return set, err
}

func sameError(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

// apply puts in force what a source holds now of documents that have changed, and of
// those that are held back; none of it if that removes too many rules.
func (b *Book) apply(s *Source, changed []*document, now instant) Outcome {
	candidates := sortedDocuments(slices.Values(slices.AppendSeq(changed, maps.Keys(s.pending))))
	b.guard(s, candidates, now)
	if s.heldBack != nil {
		for _, d := range candidates {
			s.pending[d] = struct{}{}
		}
	}
	e := b.begin()
	e.origin = Origin{Source: s.name, Rules: s.rules}
	for _, d := range candidates {
		if d.problem = d.obstacle(); d.problem == nil {
			e.apply(d, now)
		}
	}
	o := e.finish()
	for _, d := range candidates {
		if d.rejected && d.problem == nil && d.group.isWhole() {
			d.rejected = false
			o.Accepted = append(o.Accepted, d.key())
		}
		e.report(d, &o)
	}
	e.reportDisplaced(&o)
	s.confirmed = false // it was said of what the source holds now
	if s.heldBack == nil {
		s.accepted, s.reported = s.revision, nil
	}
	return o
}

func (d *document) key() DocumentKey { return DocumentKey{d.source.name, d.name} }

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

// apply makes what the source holds of a document the rules of its group.
func (e *edit) apply(d *document, now instant) {
	if !d.held.isApplied {
		replaced := e.book.parsed(&d.group, d.held.rules)
		if len(replaced) > 0 {
			e.origin.Documents = append(e.origin.Documents, d.versionName())
		}
		e.replace(&d.group, replaced)
		d.group.beside = e.book.config.Table.WithRules(d.held.rules, none)
		d.held.rules, d.held.isApplied = rules.Set{}, true
	}
	if created := cmp.Or(d.held.created, d.held.revision); d.group.created != created {
		e.rank(&d.group, created)
	}
	e.serve(&d.group)
	delete(d.source.pending, d)
	if d.held.gone {
		delete(d.source.documents, d.name)
	}
	at := d.inForce.at
	if at == 0 || d.inForce.digest != d.held.digest {
		at = now
	}
	d.source.rules += d.held.count - d.inForce.count
	d.inForce = d.held
	d.inForce.at = at
	d.conflict = nil
}

// versionName names the version that the source holds, for the log.
func (d *document) versionName() string {
	switch {
	case d.held.gone:
		return d.name + " removed"
	case d.held.revision != 0:
		return fmt.Sprintf("%s@%d", d.name, d.held.revision)
	}
	return d.name
}

// report adds what is wrong with what the source holds of a document, if that was not
// reported yet.
func (e *edit) report(d *document, o *Outcome) {
	why := cmp.Or(d.problem, e.book.conflict(d))
	if heldBack := (*HeldBack)(nil); errors.As(why, &heldBack) {
		d.source.reportHeldBack(o)
		return
	}
	_, displaced := e.displaced[d]
	delete(e.displaced, d)
	if why == nil || d.reported && !displaced {
		return
	}
	d.reported, d.rejected = true, true
	o.Rejections = append(o.Rejections, Rejection{d.key(), d.held.revision, why})
}

// reportDisplaced reports the owners and documents of which a rule waits now that did
// not before.
func (e *edit) reportDisplaced(o *Outcome) {
	for _, g := range slices.SortedFunc(slices.Values(e.displacedOwners), (*group).compare) {
		o.Rejections = append(o.Rejections, Rejection{DocumentKey{SourceCode, g.owner}, 0, e.book.describeConflict(g)})
	}
	for _, d := range sortedDocuments(maps.Keys(e.displaced)) {
		e.report(d, o)
	}
}

// Revision returns the revision of the source that was delivered last.
func (s *Source) Revision() int64 { return s.revision }

// DocumentStatus tells what of a document is in force.
type DocumentStatus struct {
	Name      string
	Rules     int // in force
	Revision  int64
	Created   int64
	Digest    [sha256.Size]byte
	AppliedAt clock.Instant // when the version in force was applied; 0 if none ever was

	Rejected         error // why what the source holds is not in force, or not all of it
	RejectedRevision int64
}

// Documents returns the status of all documents of a source, by name.
func (b *Book) Documents(s *Source) []DocumentStatus {
	var all []DocumentStatus
	for _, d := range sortedDocuments(maps.Values(s.documents)) {
		all = append(all, b.status(d))
	}
	return all
}

// Document returns the status of one document of a source; false if the source has none of that
// name.
func (b *Book) Document(s *Source, name string) (DocumentStatus, bool) {
	d := s.documents[name]
	if d == nil {
		return DocumentStatus{}, false
	}
	return b.status(d), true
}

func (b *Book) status(d *document) DocumentStatus {
	status := DocumentStatus{
		Name: d.name, Rules: d.inForce.count - d.group.waiting,
		Revision: d.inForce.revision, Created: d.inForce.created, Digest: d.inForce.digest, AppliedAt: d.inForce.at,
	}
	if why := cmp.Or(d.problem, b.conflict(d)); why != nil {
		status.Rejected, status.RejectedRevision = why, d.held.revision
	}
	return status
}
