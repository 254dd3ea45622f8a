package store

import (
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// recordHistory adds to the plan the entries that the push adds to the history, and the
// deletion of the oldest ones.
func (s *Store) recordHistory(p *plan, now state, push Push) error {
	next := uint64(1)
	if now.lastEntry != nil {
		next = now.lastEntry.sequence + 1
	}
	oldest := next // of the entries that the push makes
	if !now.isRecorded() {
		found := make([]Document, len(now.documents))
		for i, pair := range now.documents {
			found[i] = Document{Name: s.documentName(pair.Key), Data: pair.Value}
		}
		revision := now.foreignRevision()
		revision.Time = p.revision.Time
		if err := s.addEntry(p, next, revision, found); err != nil {
			return err
		}
		next++
	}
	if err := s.addEntry(p, next, p.revision, push.Documents); err != nil {
		return err
	}
	if keep := uint64(push.Keep); next > keep {
		// etcd rejects a deletion of a range that the same transaction writes to.
		cut := min(next-keep+1, oldest)
		p.operations = append(p.operations,
			clientv3.OpDelete(s.entriesPrefix(), clientv3.WithRange(s.entryKey(cut))),
			clientv3.OpDelete(s.snapshotsPrefix(), clientv3.WithRange(s.snapshotKey(cut))))
	}
	return nil
}

// addEntry adds an entry of the history to the plan.
func (s *Store) addEntry(p *plan, sequence uint64, revision Revision, documents []Document) error {
	value, err := json.Marshal(revision)
	if err != nil {
		return fmt.Errorf("store: writing an entry of the history: %w", err)
	}
	packed, err := pack(documents)
	if err != nil {
		return err
	}
	p.operations = append(p.operations,
		clientv3.OpPut(s.entryKey(sequence), string(value)),
		clientv3.OpPut(s.snapshotKey(sequence), string(packed)))
	p.history += len(value) + len(packed)
	return nil
}
