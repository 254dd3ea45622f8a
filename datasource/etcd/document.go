package etcd

import (
	"bytes"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-go/penstock/core"
)

// document returns the document that a key and its value are.
func (s *Source) document(pair *mvccpb.KeyValue) core.Document {
	d := core.Document{Name: s.documentName(pair), Revision: pair.ModRevision, Created: pair.CreateRevision}
	if len(pair.Value) > MaxDocumentSize {
		d.Err = fmt.Errorf("etcd: %q has %d bytes, at most %d are read: split the document",
			pair.Key, len(pair.Value), MaxDocumentSize)
		return d
	}
	d.Data = pair.Value
	return d
}

func (s *Source) documentName(pair *mvccpb.KeyValue) string {
	return string(pair.Key[len(s.keys.Documents):])
}

// add adds what a key and its value say to a change.
func (s *Source) add(c *core.Change, pair *mvccpb.KeyValue) {
	switch {
	case !s.isConfirmationKey(pair):
		c.Documents = append(c.Documents, s.document(pair))
	case confirms(pair):
		c.ConfirmedAt = pair.ModRevision
	}
}

// isConfirmationKey says whether the key is that of [Keys.Confirmation], which comes
// before those of all documents.
func (s *Source) isConfirmationKey(pair *mvccpb.KeyValue) bool {
	return len(pair.Key) == len(s.keys.Documents)
}

// confirms says whether the value at that key confirms anything.
func confirms(pair *mvccpb.KeyValue) bool { return bytes.HasPrefix(pair.Value, []byte(confirmation)) }

// change returns what events say in one, at most one event for each key.
func (s *Source) change(events []*mvccpb.Event) core.Change {
	var c core.Change
	for _, event := range events {
		c.Revision = max(c.Revision, event.Kv.ModRevision)
		if event.Type == mvccpb.Event_DELETE {
			c.Removed = append(c.Removed, s.documentName(event.Kv))
		} else {
			s.add(&c, event.Kv)
		}
	}
	return c
}
