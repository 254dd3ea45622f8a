package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Document is one named rule document as a source holds it.
type Document struct {
	// Name is unique within its source: a file name, the part of an etcd key
	// below the prefix.
	Name string

	// Revision orders the versions of a document where the source can tell
	// (etcd: the key's modification revision); 0 where it cannot.
	Revision int64

	// Created is the revision at which the document came to be, where the source
	// can tell (etcd: the key's creation revision); 0 where it cannot, Revision is
	// used instead then. When two documents have a rule of the same name, that of
	// the document created first is in force. Editing a document so does not cost
	// it its names.
	Created int64

	// Data is the document, YAML or JSON. The engine keeps no reference to it
	// after Apply has returned.
	Data []byte

	// Err, when set, says why Data could not be read. The engine reports it and
	// keeps the last good version of the document.
	Err error
}

// Change says what is new in a source.
type Change struct {
	// Complete says that Documents is all there is: a document that is not
	// among them is gone.
	Complete bool

	// Documents are those that are new or may have changed.
	Documents []Document

	// Removed names the documents that are gone.
	Removed []string

	// Revision is that of the source as a whole, 0 where it has none.
	Revision int64

	// ConfirmedAt is the last revision of the source at which somebody confirmed
	// that rules may go, 0 if that was never confirmed: [Config.MaxRemoval] holds nothing back if
	// that came after the revision in force. A source may say so again and again.
	ConfirmedAt int64

	// CopiedAt, when set, says that the documents were not read from the source
	// now but are a copy of what it held at that instant. They are put in force
	// like others; that the source cannot be read is not changed by them. A copy
	// that is not Complete only serves to be compared with the source's own documents,
	// which follow at once: the engine does not report it.
	CopiedAt clock.Instant
}

// Sink takes what a source finds. The engine is one for every source it
// follows. Apply and Disconnected return when the engine has done what they say,
// are not to be called concurrently for one source, and do nothing after the
// context handed to Run has ended. Status and Document may be called at any time.
type Sink interface {
	// Apply brings the engine's rules up to date with the source. What is wrong
	// with a document is the engine's to report; Apply itself cannot fail.
	Apply(change Change)

	// Disconnected reports that the source cannot be read at present and why.
	// The rules applied last stay in force. The next Apply ends it.
	Disconnected(err error)

	// Status tells how the source stands with the engine: what of it is in
	// force, what was rejected and why.
	Status() SourceStatus

	// Document tells how one document of the source stands; false if the engine
	// does not know it.
	Document(name string) (DocumentStatus, bool)
}

// A Source yields named rule documents: an etcd prefix, a directory.
type Source interface {
	// Name identifies the source in status, logs and metrics. It bears no
	// secrets. Sources that one engine follows have different names.
	Name() string

	// Run delivers the documents to the sink until ctx ends: first all of them,
	// as a Complete change, then whatever changes. It retries what fails, with
	// backoff, reports it to the sink, and returns only when ctx has ended or
	// when trying again is pointless; then with the reason.
	Run(ctx context.Context, sink Sink) error
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

	// Unmatched are rules of the source in force of which something is missing: a call
	// that they are for, or an attribute of these. It has the first hundred, by kind and
	// name; MoreUnmatched counts the others.
	Unmatched     []UnmatchedRule
	MoreUnmatched int

	// MissingLists are the lists that rules in force in the engine name, other than shadows, and that are not
	// there. Only [Sink.Status] tells them; [Status] has those of the whole engine.
	MissingLists []MissingList

	// Forced and Switches are what operators have forced in the engine, as [Status] has them:
	// of all rules, whatever source they come from. Only [Sink.Status] says so.
	Forced   []Forced
	Switches []Forced
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

// Staleness returns the time since it was last known what the source holds, or since it was
// followed if it was never read.
func (s SourceStatus) Staleness(now clock.Instant) time.Duration {
	known := s.KnownUntil(now)
	if known == 0 {
		known = s.Since
	}
	return max(0, now.Sub(known)) // a copy may come from a machine whose clock is ahead
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
