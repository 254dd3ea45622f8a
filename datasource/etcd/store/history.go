package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoRevision is returned by [Store.At] for a revision that the history does not
// have.
var ErrNoRevision = errors.New("store: the history has no such revision")

const foreignMessage = "found, written by other means"

// Revision is an entry of the history.
type Revision struct {
	// Revision is the revision of etcd that the push has created. An entry for
	// writes of other tools has the highest revision of the documents. If they were
	// only deleted, it has the revision at which the next push found that out.
	Revision int64     `json:"revision,omitempty"`
	Time     time.Time `json:"time"` // of the push, by the pusher's clock
	Author   string    `json:"author,omitempty"`
	Message  string    `json:"message,omitempty"`

	Documents int `json:"documents"` // number after the push
	Added     int `json:"added"`
	Changed   int `json:"changed"`
	Removed   int `json:"removed"`
}

// entry is an entry of the history with its place in etcd.
type entry struct {
	Revision
	sequence uint64 // number of the entry, part of its keys
	written  int64  // revision of etcd that wrote it
}

// History returns the entries of the history, the newest first.
func (s *Store) History(ctx context.Context) ([]Revision, error) {
	entries, err := s.entries(ctx)
	if err != nil {
		return nil, err
	}
	revisions := make([]Revision, len(entries))
	for i, e := range entries {
		revisions[i] = e.Revision
	}
	return revisions, nil
}

// At returns the documents as they were at a revision of the history, byte for
// byte. It returns [ErrNoRevision] if the history does not have that revision, or
// no longer has it.
func (s *Store) At(ctx context.Context, revision int64) (Contents, error) {
	entries, err := s.entries(ctx)
	if err != nil {
		return Contents{}, err
	}
	for _, e := range entries {
		if e.Revision.Revision == revision {
			return s.snapshot(ctx, e)
		}
	}
	return Contents{}, fmt.Errorf("%w: %d", ErrNoRevision, revision)
}

func (s *Store) snapshot(ctx context.Context, e entry) (Contents, error) {
	key := s.snapshotKey(e.sequence)
	found, err := s.client.Get(ctx, key)
	switch {
	case err != nil:
		return Contents{}, fmt.Errorf("store: reading %s: %w", key, err)
	case len(found.Kvs) == 0:
		return Contents{}, fmt.Errorf("%w any longer: %d", ErrNoRevision, e.Revision.Revision)
	}
	documents, err := unpack(found.Kvs[0].Value)
	if err != nil {
		return Contents{}, fmt.Errorf("store: reading %s: %w", key, err)
	}
	return Contents{Revision: e.Revision.Revision, Documents: documents}, nil
}

// entries returns the entries, the newest first.
func (s *Store) entries(ctx context.Context) ([]entry, error) {
	found, err := s.client.Get(ctx, s.entriesPrefix(), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return nil, fmt.Errorf("store: reading %s: %w", s.keys.History, err)
	}
	entries := make([]entry, len(found.Kvs))
	for i, pair := range found.Kvs {
		if entries[i], err = s.parseEntry(pair); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (s *Store) parseEntry(pair *mvccpb.KeyValue) (entry, error) {
	e := entry{written: pair.ModRevision}
	sequence, numberErr := strconv.ParseUint(strings.TrimPrefix(string(pair.Key), s.entriesPrefix()), 10, 64)
	if err := errors.Join(numberErr, json.Unmarshal(pair.Value, &e.Revision)); err != nil {
		return entry{}, fmt.Errorf("store: key %q is no entry of a history, somebody else has written it: delete it: %w", pair.Key, err)
	}
	e.sequence = sequence
	if e.Revision.Revision == 0 {
		e.Revision.Revision = pair.ModRevision
	}
	return e, nil
}

func (s *Store) entriesPrefix() string { return s.keys.History + "entry/" }

func (s *Store) snapshotsPrefix() string { return s.keys.History + "snapshot/" }

func (s *Store) entryKey(sequence uint64) string { return s.entriesPrefix() + number(sequence) }

func (s *Store) snapshotKey(sequence uint64) string { return s.snapshotsPrefix() + number(sequence) }

// number formats a sequence number so that keys sort by it.
func number(sequence uint64) string { return fmt.Sprintf("%020d", sequence) }
