package store

import (
	"bytes"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// plan is what a push writes.
type plan struct {
	operations []clientv3.Op
	revision   Revision
	unchanged  []string // keys of the documents that it does not change
	changed    []string // keys of those that it changes or deletes
	documents  int      // bytes of documents that it writes
	history    int      // bytes of history that it writes
}

func (p *plan) empty() bool { return len(p.operations) == 0 }

// plan compares the present documents with those of the push.
func (s *Store) plan(now state, push Push) plan {
	p := plan{revision: Revision{
		Time: s.now(), Author: push.Author, Message: push.Message, Documents: len(push.Documents),
	}}
	wanted := make(map[string][]byte, len(push.Documents))
	for _, d := range push.Documents {
		wanted[s.keys.Documents+d.Name] = d.Data
	}
	for _, pair := range now.documents {
		key := string(pair.Key)
		data, keep := wanted[key]
		if keep && bytes.Equal(data, pair.Value) {
			p.unchanged = append(p.unchanged, key)
			delete(wanted, key)
			continue
		}
		p.changed = append(p.changed, key)
		if keep {
			p.revision.Changed++
		} else {
			p.revision.Removed++
			p.operations = append(p.operations, clientv3.OpDelete(key))
		}
	}
	p.revision.Added = len(wanted) - p.revision.Changed
	for _, d := range push.Documents {
		key := s.keys.Documents + d.Name
		if data, write := wanted[key]; write {
			p.operations = append(p.operations, clientv3.OpPut(key, string(data)))
			p.documents += len(key) + len(data)
		}
	}
	if push.ConfirmRemovals && len(p.changed) > 0 {
		key, value := s.keys.Confirmation(push.Author)
		p.operations = append(p.operations, clientv3.OpPut(key, value))
	}
	return p
}
