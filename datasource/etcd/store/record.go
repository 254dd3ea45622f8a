package store

import (
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// record adds to the plan what the history gains and loses by the push.
func (s *Store) record(p *plan, now state, push Push) error {
	next := uint64(1)
	if now.last != nil {
		next = now.last.sequence + 1
	}
	oldest := next // of the entries that the push makes
	if !now.recorded() {
		found := make([]Document, len(now.documents))
		for i, pair := range now.documents {
			found[i] = Document{Name: s.documentName(pair.Key), Data: pair.Value}
		}
		revision := now.found()
		revision.Time = p.revision.Time
		if err := s.enter(p, next, revision, found); err != nil {
			return err
		}
		next++
	}
	if err := s.enter(p, next, p.revision, push.Documents); err != nil {
		return err
	}
	if keep := uint64(push.Keep); next > keep {
		// etcd takes no range that a put of the same transaction is in.
		cut := min(next-keep+1, oldest)
		p.operations = append(p.operations,
			clientv3.OpDelete(s.entriesPrefix(), clientv3.WithRange(s.entryKey(cut))),
			clientv3.OpDelete(s.snapshotsPrefix(), clientv3.WithRange(s.snapshotKey(cut))))
	}
	return nil
}

// enter adds an entry.
func (s *Store) enter(p *plan, sequence uint64, revision Revision, documents []Document) error {
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
