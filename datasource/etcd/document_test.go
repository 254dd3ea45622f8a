package etcd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
)

func TestLatestEventOfAKeyIsApplied(t *testing.T) {
	put := func(name, value string, revision int64) *mvccpb.Event {
		return &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("/p/" + name), Value: []byte(value), ModRevision: revision}}
	}
	removal := func(name string, revision int64) *mvccpb.Event {
		return &mvccpb.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte("/p/" + name), ModRevision: revision}}
	}
	document := func(name, value string, revision int64) core.Document {
		return core.Document{Name: name, Revision: revision, Data: []byte(value)}
	}
	for name, test := range map[string]struct {
		events []*mvccpb.Event
		want   core.Change
	}{
		"one": {
			[]*mvccpb.Event{put("a", "1", 5)},
			core.Change{Revision: 5, Documents: []core.Document{document("a", "1", 5)}},
		},
		"several keys": {
			[]*mvccpb.Event{put("b", "1", 5), removal("c", 5), put("a/x", "2", 6)},
			core.Change{Revision: 6, Documents: []core.Document{document("b", "1", 5), document("a/x", "2", 6)}, Removed: []string{"c"}},
		},
		"put again": {
			[]*mvccpb.Event{put("a", "1", 5), put("a", "2", 6)},
			core.Change{Revision: 6, Documents: []core.Document{document("a", "2", 6)}},
		},
		"removed after all": {
			[]*mvccpb.Event{put("a", "1", 5), removal("a", 6)},
			core.Change{Revision: 6, Removed: []string{"a"}},
		},
		"an older one again": {
			[]*mvccpb.Event{put("a", "1", 5), put("a", "2", 6), removal("b", 7), put("a", "1", 5)},
			core.Change{Revision: 7, Documents: []core.Document{document("a", "2", 6)}, Removed: []string{"b"}},
		},
		"back after all": {
			[]*mvccpb.Event{removal("a", 5), put("a", "2", 6), put("b", "1", 7)},
			core.Change{Revision: 7, Documents: []core.Document{document("a", "2", 6), document("b", "1", 7)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n eventSet
			n.add(&pb.WatchResponse{Events: test.events})
			assert.Equal(t, test.want, (&Source{keys: Keys{Documents: "/p/"}}).change(n.after(0)))
		})
	}
}
