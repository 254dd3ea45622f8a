package etcd

import (
	"bytes"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
)

// document converts a key and its value to a document. A value that is too long
// becomes a document with an error.
func (s *Source) document(pair *mvccpb.KeyValue) core.Document {
	d := core.Document{Name: s.documentName(pair), Revision: pair.ModRevision, Created: pair.CreateRevision}
	if len(pair.Value) > MaxDocumentSize {
		d.Err = fmt.Errorf("etcd: %q has %d bytes, at most %d are read: split the document",
			pair.Key, len(pair.Value), MaxDocumentSize)
		return d
	}
	if s.connection != nil {
		return listDocument(d, pair)
	}
	d.Data = pair.Value
	return d
}

func (s *Source) documentName(pair *mvccpb.KeyValue) string {
	return string(pair.Key[len(s.keys.Documents):])
}

// addPair adds a key and its value to a change: a document or a confirmation.
func (s *Source) addPair(c *core.Change, pair *mvccpb.KeyValue) {
	switch {
	case !s.isConfirmationKey(pair):
		c.Documents = append(c.Documents, s.document(pair))
	case confirms(pair):
		c.ConfirmedAt = pair.ModRevision
	}
}

// isConfirmationKey reports whether the key is that of [Keys.Confirmation], which
// sorts before those of all documents.
func (s *Source) isConfirmationKey(pair *mvccpb.KeyValue) bool {
	return len(pair.Key) == len(s.keys.Documents)
}

// confirms reports whether the value at the confirmation key is a confirmation.
func confirms(pair *mvccpb.KeyValue) bool { return bytes.HasPrefix(pair.Value, []byte(confirmation)) }

// change converts events to one change. There is at most one event for each key.
func (s *Source) change(events []*mvccpb.Event) core.Change {
	var c core.Change
	for _, event := range events {
		c.Revision = max(c.Revision, event.Kv.ModRevision)
		if event.Type == clientv3.EventTypeDelete {
			c.Removed = append(c.Removed, s.documentName(event.Kv))
		} else {
			s.addPair(&c, event.Kv)
		}
	}
	return c
}
