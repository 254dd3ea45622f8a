package etcd

import (
	"cmp"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// news is what a watch has brought: of several events on one key only the
// latest, so that it takes no more memory than the documents themselves.
type news struct {
	events   map[string]*mvccpb.Event
	revision int64 // of the member, as the latest response tells; 0 if none does
}

// add adds the events of a response.
func (n *news) add(response *pb.WatchResponse) {
	n.revision = max(n.revision, response.Header.GetRevision())
	if n.events == nil {
		n.events = make(map[string]*mvccpb.Event, len(response.Events))
	}
	for _, event := range response.Events {
		known := n.events[string(event.Kv.Key)]
		if known == nil || known.Kv.ModRevision < event.Kv.ModRevision {
			n.events[string(event.Kv.Key)] = event
		}
	}
}

// check returns an error if more keys have changed than there can be documents
// before and after: none of them is applied then.
func (n *news) check(maxDocuments int) error {
	if len(n.events) > 2*maxDocuments+1 {
		return fmt.Errorf("more than %d keys have changed at once, twice what Options.MaxDocuments allows", len(n.events)-1)
	}
	return nil
}

// after returns the events later than a revision, in their order.
func (n *news) after(revision int64) []*mvccpb.Event {
	var later []*mvccpb.Event
	for _, event := range n.events {
		if event.Kv.ModRevision > revision {
			later = append(later, event)
		}
	}
	slices.SortFunc(later, func(a, b *mvccpb.Event) int {
		return cmp.Or(cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision), slices.Compare(a.Kv.Key, b.Kv.Key))
	})
	return later
}
