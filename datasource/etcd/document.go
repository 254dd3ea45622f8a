package etcd

import (
	"bytes"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// document converts a key and its value to a document. A value that is too long, or a
// name, becomes a document with an error.
func (s *Source) document(pair *mvccpb.KeyValue) core.Document {
	d := snapshot.Document("etcd", s.longName(pair), pair.Value)
	d.Revision, d.Created = pair.ModRevision, pair.CreateRevision
	if s.connection != nil && d.Err == nil {
		return listDocument(d, pair)
	}
	return d
}

// documentName returns the name of the document of a key, see [shortName].
func (s *Source) documentName(pair *mvccpb.KeyValue) string { return shortName(s.longName(pair)) }

func (s *Source) longName(pair *mvccpb.KeyValue) string {
	return string(pair.Key[len(s.keys.Documents):])
}

// shortName returns the name of a document as status and reports have it: the beginning of one that is too long, and
// a digest. Such a document is rejected.
func shortName(name string) string { return snapshot.Document("etcd", name, nil).Name }

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
