package core

import (
	"errors"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// Status tells which rules are in force and how their sources are.
type Status struct {
	Revision  uint64        // of the rule set, counted by the engine; 0 before the first
	AppliedAt clock.Instant // when it was put in force
	Rules     int
	Sources   []SourceStatus // in the order in which they were first followed
	Unmatched Unmatched      // rules that no call has matched
}

// SourceStatus tells how a source is.
type SourceStatus struct {
	Name      string
	Ready     bool          // all of its documents were read once, from itself or from a copy
	Connected bool          // it could be read when last tried
	Since     clock.Instant // when Connected last changed, or when it was followed
	Err       error         // why it is not connected
	Revision  int64         // of the source as a whole, as last read

	// CopiedAt is set when what is in force was not read from the source but
	// from a copy of what it held at that instant.
	CopiedAt clock.Instant

	// HeldBack is set while what the source holds is not put in force, for it would
	// take out too many rules at once.
	HeldBack *HeldBackError

	Documents []DocumentStatus
}

// KnownUntil returns the instant until which it is known what the source holds:
// now while it is connected, else when it was lost, or copied; 0 if it was never
// read.
func (s SourceStatus) KnownUntil(now clock.Instant) clock.Instant {
	switch {
	case s.Connected:
		return now
	case s.CopiedAt != 0:
		return s.CopiedAt
	case s.Ready:
		return s.Since
	default:
		return 0
	}
}

// DocumentStatus tells what of a document is in force.
type DocumentStatus struct {
	Name      string
	Rules     int           // in force
	Revision  int64         // of the version in force
	Created   int64         // of the version in force, see Document.Created
	Digest    [32]byte      // the SHA-256 of the version in force
	AppliedAt clock.Instant // when that version was put in force; 0 if none ever was

	// Rejected says why the version that the source holds now, of revision
	// RejectedRevision, is not the one in force, or which of its rules are not, for
	// the code or documents that come first have rules of their names; nil when
	// all of it is in force.
	Rejected         error
	RejectedRevision int64
}

// Status returns the present status.
func (e *Engine) Status() Status {
	defer e.journal.flush(e.clock.Now(), false)
	e.noteMatched()
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	status := Status{Revision: e.rules.revision, AppliedAt: e.rules.appliedAt, Rules: e.rules.book.Len()}
	status.Unmatched = e.rules.unmatched()
	for _, f := range e.sources.list {
		status.Sources = append(status.Sources, f.status())
	}
	return status
}

// Status is the engine's side of [Sink].
func (f *followedSource) Status() SourceStatus {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	return f.status()
}

func (f *followedSource) status() SourceStatus {
	s := SourceStatus{
		Name: f.name, Ready: f.read, Connected: f.connected, Since: f.since, Err: f.err, Revision: f.source.Revision(),
		CopiedAt: f.copiedAt, HeldBack: (*HeldBackError)(f.source.HeldBack()),
	}
	for _, d := range f.source.Documents() {
		s.Documents = append(s.Documents, documentStatus(d))
	}
	return s
}

// Document is the engine's side of [Sink].
func (f *followedSource) Document(name string) (DocumentStatus, bool) {
	f.engine.rules.mu.Lock()
	defer f.engine.rules.mu.Unlock()
	d, ok := f.source.Document(name)
	return documentStatus(d), ok
}

func documentStatus(d ruleset.DocumentStatus) DocumentStatus {
	return DocumentStatus{
		Name: d.Name, Rules: d.Rules, Revision: d.Revision, Created: d.Created, Digest: d.Digest, AppliedAt: d.AppliedAt,
		Rejected: publicError(d.Rejected), RejectedRevision: d.RejectedRevision,
	}
}

// publicError returns an error of package ruleset as the engine reports it.
func publicError(err error) error {
	if heldBack := (*ruleset.HeldBack)(nil); errors.As(err, &heldBack) {
		return (*HeldBackError)(heldBack)
	}
	return err
}
