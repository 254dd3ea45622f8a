package store

import (
	"bytes"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// plan is what a push writes.
type plan struct {
	operations []clientv3.Op
	revision   Revision
	same       []string // keys of the documents that it leaves alone
	other      []string // keys of those that it changes or deletes
	documents  int      // bytes of documents to be written
	history    int      // and of history
}

func (p *plan) empty() bool { return len(p.operations) == 0 }

// plan compares what there is with what shall be.
func (s *Store) plan(now state, push Push) plan {
	p := plan{revision: Revision{
		Time: s.clock.Now().Time(), Author: push.Author, Message: push.Message, Documents: len(push.Documents),
	}}
	wanted := make(map[string][]byte, len(push.Documents))
	for _, d := range push.Documents {
		wanted[s.keys.Documents+d.Name] = d.Data
	}
	for _, pair := range now.documents {
		key := string(pair.Key)
		data, keep := wanted[key]
		if keep && bytes.Equal(data, pair.Value) {
			p.same = append(p.same, key)
			delete(wanted, key)
			continue
		}
		p.other = append(p.other, key)
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
	if push.ConfirmRemovals && len(p.other) > 0 {
		key, value := s.keys.Confirmation(push.Author)
		p.operations = append(p.operations, clientv3.OpPut(key, value))
	}
	return p
}
