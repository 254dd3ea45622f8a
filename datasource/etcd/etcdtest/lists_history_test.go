package etcdtest_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func TestHistoryOfAListIsBounded(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	for i := range 12 {
		pushList(t, s, "l", strconv.Itoa(i)+"\n")
	}
	former, err := s.ListHistory(t.Context(), "l")
	require.NoError(t, err)
	require.Len(t, former, 5)
	for i := 1; i < len(former); i++ {
		assert.Less(t, former[i].Revision, former[i-1].Revision)
	}
	assert.Len(t, chunkKeys(t, server, "l"), 6, "no chunk of a version that is not kept is left")
	for range 3 { // two versions that take turns are two
		pushList(t, s, "l", "x\n")
		pushList(t, s, "l", "y\n")
	}
	former, err = s.ListHistory(t.Context(), "l")
	require.NoError(t, err)
	assert.Len(t, former, 5)
	assert.Len(t, chunkKeys(t, server, "l"), 6)
}

func TestRollbackRestoresAListUnlessSomebodyHasWritten(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	first := pushList(t, s, "l", listOf("first", several))
	second := pushList(t, s, "l", listOf("second", several))
	w.await(t, "l", "second")

	_, err := s.RollBackList(t.Context(), store.ListRollback{Name: "l", Revision: first.Revision, Expect: first.Revision})
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = s.RollBackList(t.Context(), store.ListRollback{Name: "l", Revision: second.Revision, Expect: second.Revision})
	require.ErrorIs(t, err, store.ErrNoRevision, "it is the present one")
	restored, err := s.RollBackList(t.Context(), store.ListRollback{Name: "l", Revision: first.Revision, Expect: second.Revision})
	require.NoError(t, err)
	assert.Equal(t, first.Digest, restored.Digest)
	assert.Greater(t, restored.Revision, second.Revision)
	w.await(t, "l", "first")

	_, err = server.Client().Delete(t.Context(), listsPrefix+"chunk/l/"+second.Digest, clientv3.WithPrefix())
	require.NoError(t, err)
	_, err = s.RollBackList(t.Context(), store.ListRollback{Name: "l", Revision: second.Revision, Expect: restored.Revision})
	require.ErrorContains(t, err, "is gone")
}

// A push of a former version that fails leaves its chunks to the history.
func TestPushThatFailsLeavesTheHistoryWhole(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	first := pushList(t, s, "l", "a\n")
	second := pushList(t, s, "l", "b\n")
	stop := func(int64, int64) { pushList(t, s, "l", "c\n") } // somebody else is faster
	_, err := s.PushList(t.Context(), store.ListPush{Name: "l", Text: strings.NewReader("a\n"), Progress: stop})
	require.ErrorIs(t, err, store.ErrConflict)
	former, err := s.ListHistory(t.Context(), "l")
	require.NoError(t, err)
	require.Len(t, former, 2)
	assert.Equal(t, []int64{second.Revision, first.Revision}, []int64{former[0].Revision, former[1].Revision})
	present, err := s.List(t.Context(), "l")
	require.NoError(t, err)
	_, err = s.RollBackList(t.Context(), store.ListRollback{Name: "l", Revision: first.Revision, Expect: present.Revision})
	require.NoError(t, err)
}
