package etcd

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-go/penstock/core"
)

// document returns the document that a key and its value are.
func (s *Source) document(pair *mvccpb.KeyValue) core.Document {
	d := core.Document{Name: s.documentName(pair), Revision: pair.ModRevision}
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

// change returns what events say in one: of several on one key the last counts.
func (s *Source) change(events []*mvccpb.Event) core.Change {
	last := make(map[string]*mvccpb.Event, len(events))
	for _, event := range events {
		last[string(event.Kv.Key)] = event
	}
	var c core.Change
	for _, event := range events {
		c.Revision = event.Kv.ModRevision // events are in the order of revisions
		switch {
		case event != last[string(event.Kv.Key)]:
		case event.Type == mvccpb.Event_DELETE:
			c.Removed = append(c.Removed, s.documentName(event.Kv))
		default:
			c.Documents = append(c.Documents, s.document(event.Kv))
		}
	}
	return c
}
