package store

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Contents are all documents at one revision.
type Contents struct {
	// Revision is the revision of etcd at which they were read, or that of an entry
	// of the history.
	Revision  int64
	Documents []Document // by name

	// Latest is the highest revision of a document, of present documents only.
	Latest int64
}

// Pull returns the present documents.
func (s *Store) Pull(ctx context.Context) (Contents, error) {
	first, end := s.keys.DocumentRange()
	found, err := s.client.Get(ctx, first, clientv3.WithRange(end))
	if err != nil {
		return Contents{}, fmt.Errorf("store: reading %s: %w", s.keys.Documents, err)
	}
	contents := Contents{Revision: found.Header.Revision}
	for _, pair := range found.Kvs {
		contents.Documents = append(contents.Documents, Document{Name: s.documentName(pair.Key), Data: pair.Value})
		contents.Latest = max(contents.Latest, pair.ModRevision)
	}
	return contents, nil
}

func (s *Store) documentName(key []byte) string {
	return strings.TrimPrefix(string(key), s.keys.Documents)
}
