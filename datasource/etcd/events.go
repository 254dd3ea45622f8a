package etcd

import (
	"cmp"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// eventSet collects the events that a watch has delivered. It keeps only the latest
// event of each key, so it takes no more memory than the documents themselves.
type eventSet struct {
	events   map[string]*mvccpb.Event
	revision int64 // of the member, by the latest response; 0 if unknown
}

// add adds the events of a response.
func (s *eventSet) add(response *pb.WatchResponse) {
	s.revision = max(s.revision, response.Header.GetRevision())
	if s.events == nil {
		s.events = make(map[string]*mvccpb.Event, len(response.Events))
	}
	for _, event := range response.Events {
		known := s.events[string(event.Kv.Key)]
		if known == nil || known.Kv.ModRevision < event.Kv.ModRevision {
			s.events[string(event.Kv.Key)] = event
		}
	}
}

// check returns an error if more keys have changed than the documents before and
// after can have. None of the events is applied then.
func (s *eventSet) check(maxDocuments int) error {
	if len(s.events) > 2*maxDocuments+1 {
		return fmt.Errorf("more than %d keys have changed at once, twice what Options.MaxDocuments allows", len(s.events)-1)
	}
	return nil
}

// after returns the events later than a revision, in order of revision.
func (s *eventSet) after(revision int64) []*mvccpb.Event {
	var later []*mvccpb.Event
	for _, event := range s.events {
		if event.Kv.ModRevision > revision {
			later = append(later, event)
		}
	}
	slices.SortFunc(later, func(a, b *mvccpb.Event) int {
		return cmp.Or(cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision), slices.Compare(a.Kv.Key, b.Kv.Key))
	})
	return later
}
