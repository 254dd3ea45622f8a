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

// state is what a push finds, at one revision.
type state struct {
	revision  int64
	documents []*mvccpb.KeyValue // by key
	last      *entry             // of the history; nil when there is none
	expected  []*mvccpb.KeyValue // keys of the documents at the revision that the push expects
}

// look reads the state. When the expected revision is no longer known, it returns
// a *ConflictError.
func (s *Store) look(ctx context.Context, expect int64) (state, error) {
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
		now.last = &last
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
	if now.last != nil && now.last.written > expect {
		pushed = &now.last.Revision
	}
	if pushed == nil && len(names) == 0 {
		return nil
	}
	return &ConflictError{Expect: expect, Documents: names, Pushed: pushed}
}

// latest is the highest revision of a document that is there; 0 without any.
func (s state) latest() int64 {
	var latest int64
	for _, pair := range s.documents {
		latest = max(latest, pair.ModRevision)
	}
	return latest
}

// recorded says whether the documents are as the last push left them: nothing was
// written to etcd after it, or no document was and none is missing.
func (s state) recorded() bool {
	if s.last == nil {
		return len(s.documents) == 0
	}
	return s.revision == s.last.written || s.latest() <= s.last.written && len(s.documents) == s.last.Documents
}

// found is the entry for documents that were written by other means. Of one that
// was deleted and written again it counts both.
func (s state) found() Revision {
	r := Revision{Message: foundMessage, Documents: len(s.documents)}
	var before Revision
	var written int64
	if s.last != nil {
		before, written = s.last.Revision, s.last.written
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
	// When documents were only deleted, nothing tells when that was: the entry
	// has the revision at which they were found gone.
	if r.Revision = s.latest(); r.Revision <= written {
		r.Revision = s.revision
	}
	return r
}
