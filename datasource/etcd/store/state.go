package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// state is what is in etcd before a push, at one revision.
type state struct {
	revision  int64
	documents []*mvccpb.KeyValue // by key
	lastEntry *entry             // of the history; nil if the history is empty
	expected  []*mvccpb.KeyValue // keys of the documents at the revision that the push expects
}

// readState reads the state. It returns a *ConflictError if the expected revision has
// been compacted.
func (s *Store) readState(ctx context.Context, expect int64) (state, error) {
	first, end := s.keys.DocumentRange()
	read, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(first, clientv3.WithRange(end)),
		clientv3.OpGet(s.entriesPrefix(), clientv3.WithLastKey()...),
		clientv3.OpGet(first, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithRev(expect)),
	).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return state{}, &ConflictError{Expect: expect, Compacted: true}
	case errors.Is(err, rpctypes.ErrFutureRev):
		return state{}, fmt.Errorf("store: revision %d is yet to come: it was pulled from another cluster, or this one was restored; pull again: %w", expect, err)
	case err != nil:
		return state{}, fmt.Errorf("store: reading %s: %w", s.keys.Documents, err)
	}
	now := state{
		revision:  read.Header.Revision,
		documents: read.Responses[0].GetResponseRange().Kvs,
		expected:  read.Responses[2].GetResponseRange().Kvs,
	}
	for _, pair := range read.Responses[1].GetResponseRange().Kvs {
		last, err := s.parseEntry(pair)
		if err != nil {
			return state{}, err
		}
		now.lastEntry = &last
	}
	return now, nil
}

// conflict returns an error if somebody has written after the revision.
func (s *Store) conflict(now state, expect int64) error {
	var names []string
	there := make(map[string]struct{}, len(now.documents))
	for _, pair := range now.documents {
		there[string(pair.Key)] = struct{}{}
		if pair.ModRevision > expect {
			names = append(names, s.documentName(pair.Key))
		}
	}
	for _, pair := range now.expected {
		if _, still := there[string(pair.Key)]; !still {
			names = append(names, s.documentName(pair.Key))
		}
	}
	slices.Sort(names)
	var pushed *Revision
	if now.lastEntry != nil && now.lastEntry.written > expect {
		pushed = &now.lastEntry.Revision
	}
	if pushed == nil && len(names) == 0 {
		return nil
	}
	return &ConflictError{Expect: expect, Documents: names, Pushed: pushed}
}

// latestRevision returns the highest revision of a document; 0 without any.
func (s state) latestRevision() int64 {
	var latest int64
	for _, pair := range s.documents {
		latest = max(latest, pair.ModRevision)
	}
	return latest
}

// isRecorded reports whether the documents are as the last push left them: nothing
// was written to etcd after it, or no document was written and none is missing.
func (s state) isRecorded() bool {
	if s.lastEntry == nil {
		return len(s.documents) == 0
	}
	return s.revision == s.lastEntry.written || s.latestRevision() <= s.lastEntry.written && len(s.documents) == s.lastEntry.Documents
}

// foreignRevision returns the entry for documents that other tools have written. A document
// that was deleted and written again counts as removed and as added.
func (s state) foreignRevision() Revision {
	r := Revision{Message: foreignMessage, Documents: len(s.documents)}
	var before Revision
	var written int64
	if s.lastEntry != nil {
		before, written = s.lastEntry.Revision, s.lastEntry.written
	}
	for _, pair := range s.documents {
		switch {
		case pair.CreateRevision > written:
			r.Added++
		case pair.ModRevision > written:
			r.Changed++
		}
	}
	r.Removed = before.Documents + r.Added - r.Documents
	// If documents were only deleted, etcd does not say when. The entry then has
	// the revision at which this was found out.
	if r.Revision = s.latestRevision(); r.Revision <= written {
		r.Revision = s.revision
	}
	return r
}
