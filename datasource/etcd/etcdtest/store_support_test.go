package etcdtest_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// newStore returns a store of the server's documents on a client of its own.
func newStore(t *testing.T, server *etcdtest.Server, opts ...grpc.DialOption) *store.Store {
	t.Helper()
	s, err := store.New(dial(t, server.Endpoint(), opts...), prefix)
	require.NoError(t, err)
	return s
}

// documents converts texts by name to documents.
func documents(texts map[string]string) []store.Document {
	var list []store.Document
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, store.Document{Name: name, Data: []byte(texts[name])})
	}
	return list
}

// texts is the inverse of documents.
func texts(contents store.Contents) map[string]string {
	found := make(map[string]string, len(contents.Documents))
	for _, d := range contents.Documents {
		found[d.Name] = string(d.Data)
	}
	return found
}

func pull(t require.TestingT, s *store.Store) store.Contents {
	contents, err := s.Pull(context.Background())
	require.NoError(t, err)
	return contents
}

// push replaces all documents by these.
func push(t require.TestingT, s *store.Store, wanted map[string]string) store.Revision {
	revision, err := s.Push(context.Background(), store.Push{Documents: documents(wanted), Expect: pull(t, s).Revision})
	require.NoError(t, err)
	return revision
}

func history(t require.TestingT, s *store.Store) []store.Revision {
	revisions, err := s.History(context.Background())
	require.NoError(t, err)
	return revisions
}

// at returns the documents at a revision of the history.
func at(t require.TestingT, s *store.Store, revision int64) map[string]string {
	contents, err := s.At(context.Background(), revision)
	require.NoError(t, err)
	require.Equal(t, revision, contents.Revision)
	return texts(contents)
}
