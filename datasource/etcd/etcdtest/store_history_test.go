package etcdtest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func TestHistoryListsPushesNewestFirst(t *testing.T) {
	s := newStore(t, start(t, etcdtest.Options{}))
	assert.Empty(t, history(t, s))
	var want []store.Revision
	for i := range 12 {
		revision := push(t, s, map[string]string{"a": fmt.Sprint(i)})
		revision.Time = revision.Time.UTC()
		want = append([]store.Revision{revision}, want...)
	}
	assert.Equal(t, want, history(t, s))
	for i, revision := range want {
		assert.Equal(t, map[string]string{"a": fmt.Sprint(11 - i)}, at(t, s, revision.Revision))
	}
	_, err := s.At(t.Context(), want[0].Revision+1)
	require.ErrorIs(t, err, store.ErrNoRevision)
	assert.EqualError(t, err, fmt.Sprint("store: the history has no such revision: ", want[0].Revision+1))
}

func TestHistoryIsBounded(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	keep := func(n int, text string) store.Revision {
		revision, err := s.Push(t.Context(), store.Push{
			Documents: documents(map[string]string{"a": text}), Expect: pull(t, s).Revision, Keep: n,
		})
		require.NoError(t, err)
		return revision
	}
	oldest := keep(0, "oldest")
	for i := range 109 {
		keep(0, fmt.Sprint(i))
	}
	assert.Len(t, history(t, s), 100, "by default")
	_, err := s.At(t.Context(), oldest.Revision)
	require.ErrorIs(t, err, store.ErrNoRevision)

	keep(7, "fewer")
	assert.Len(t, history(t, s), 7)
	left, err := server.Client().Get(t.Context(), "/penstock/shop.history/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	assert.Equal(t, int64(14), left.Count, "an entry and a snapshot each")

	put(t, server, "b", "by hand")
	keep(1, "newest")
	revisions := history(t, s)
	require.Len(t, revisions, 2, "what a push records stays")
	assert.Equal(t, map[string]string{"a": "fewer", "b": "by hand"}, at(t, s, revisions[1].Revision))
	assert.Equal(t, map[string]string{"a": "newest"}, at(t, s, revisions[0].Revision))
	keep(1, "one")
	assert.Len(t, history(t, s), 1)
}

func TestWritesOfOtherToolsAreRecorded(t *testing.T) {
	put := func(name, value string) clientv3.Op { return clientv3.OpPut(prefix+name, value) }
	removal := func(name string) clientv3.Op { return clientv3.OpDelete(prefix + name) }
	for name, test := range map[string]struct {
		before map[string]string // pushed; nil: there was no push
		write  []clientv3.Op     // each in a transaction of its own
		want   map[string]string // recorded
		counts store.Revision
	}{
		"before the first push": {
			nil,
			[]clientv3.Op{put("a", "1"), put("b", "2")},
			map[string]string{"a": "1", "b": "2"},
			store.Revision{Added: 2},
		},
		"added, changed and removed": {
			map[string]string{"a": "1", "b": "1", "c": "1"},
			[]clientv3.Op{put("a", "2"), put("d", "1"), removal("b")},
			map[string]string{"a": "2", "c": "1", "d": "1"},
			store.Revision{Added: 1, Changed: 1, Removed: 1},
		},
		"only removed": {
			map[string]string{"a": "1", "b": "1"},
			[]clientv3.Op{removal("b")},
			map[string]string{"a": "1"},
			store.Revision{Removed: 1},
		},
		"all removed": {
			map[string]string{"a": "1"},
			[]clientv3.Op{removal("a")},
			map[string]string{},
			store.Revision{Removed: 1},
		},
		"removed and written again": {
			map[string]string{"a": "1"},
			[]clientv3.Op{removal("a"), put("a", "1")},
			map[string]string{"a": "1"},
			store.Revision{Added: 1, Removed: 1},
		},
		"with names that a push refuses": {
			map[string]string{"a": "1"},
			[]clientv3.Op{put("/x//\x00\xff", "\x00\xff")},
			map[string]string{"a": "1", "/x//\x00\xff": "\x00\xff"},
			store.Revision{Added: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			s := newStore(t, server)
			entries := 0
			if test.before != nil {
				push(t, s, test.before)
				entries = 1
			}
			var written int64
			for _, op := range test.write {
				written = commit(t, server, op)
			}
			pushed := push(t, s, map[string]string{"new": "1"})

			revisions := history(t, s)
			require.Len(t, revisions, entries+2)
			found := revisions[1]
			test.counts.Documents, test.counts.Time = len(test.want), pushed.Time.UTC()
			test.counts.Message = "found, written by other means"
			test.counts.Revision = written
			if op := test.write[len(test.write)-1]; op.IsDelete() && name == "added, changed and removed" {
				test.counts.Revision = written - 1 // the highest of a document that is there
			}
			assert.Equal(t, test.counts, found)
			assert.Equal(t, test.want, at(t, s, found.Revision))
			assert.Equal(t, map[string]string{"new": "1"}, at(t, s, pushed.Revision))
		})
	}
}

func TestForeignKeyInTheHistoryIsAnError(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	revision := push(t, s, map[string]string{"a": "1"})
	commit(t, server, clientv3.OpPut("/penstock/shop.history/snapshot/00000000000000000001", "no snapshot"))
	_, err := s.At(t.Context(), revision.Revision)
	require.ErrorContains(t, err, "the snapshot is damaged")
	commit(t, server, clientv3.OpDelete("/penstock/shop.history/snapshot/", clientv3.WithPrefix()))
	_, err = s.At(t.Context(), revision.Revision)
	require.ErrorIs(t, err, store.ErrNoRevision)

	for key, value := range map[string]string{"entry/00000000000000000002": "{", "entry/x": "{}"} {
		key = "/penstock/shop.history/" + key
		commit(t, server, clientv3.OpPut(key, value))
		_, err := s.History(t.Context())
		require.ErrorContains(t, err, fmt.Sprintf("store: key %q is no entry of a history", key))
		_, err = s.Push(t.Context(), store.Push{Expect: pull(t, s).Revision})
		require.ErrorContains(t, err, "delete it")
		commit(t, server, clientv3.OpDelete(key))
	}
	commit(t, server, clientv3.OpDelete("/penstock/shop.history/", clientv3.WithPrefix()))
	push(t, s, map[string]string{"a": "2"})
	assert.Len(t, history(t, s), 2, "anew: what was found, and the push")
}

func TestHistoriesOfApplicationsAreSeparate(t *testing.T) {
	server := start(t, etcdtest.Options{})
	neighbours := []string{"/penstock/shopping", "/penstock/sho", "/penstock/shop.x", "/penstock/shop0"}
	for _, p := range append(neighbours, prefix) {
		s, err := store.New(server.Client(), p)
		require.NoError(t, err)
		push(t, s, map[string]string{"a": p})
	}
	s := newStore(t, server)
	assert.Equal(t, map[string]string{"a": prefix}, texts(pull(t, s)))
	assert.Len(t, history(t, s), 1)
	push(t, s, nil)
	assert.Len(t, history(t, s), 2)
	for _, p := range neighbours {
		s, err := store.New(server.Client(), p)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a": p}, texts(pull(t, s)))
		assert.Len(t, history(t, s), 1)
	}
}

// archive is a model of a store: its documents and their history.
type archive struct {
	store   *store.Store
	client  *clientv3.Client
	prefix  string
	there   map[string]string
	foreign map[string]bool // documents that other tools have written since the last entry
	history []map[string]string
	keep    int
}

func (a *archive) push(t *rapid.T, wanted map[string]string) {
	changes := !maps.Equal(a.there, wanted)
	_, err := a.store.Push(context.Background(), store.Push{
		Documents: documents(wanted), Expect: pull(t, a.store).Revision, Keep: a.keep,
	})
	require.NoError(t, err)
	if !changes {
		return
	}
	made := 1
	var last map[string]string
	if len(a.history) > 0 {
		last = a.history[len(a.history)-1]
	}
	if len(a.foreign) > 0 || len(a.there) != len(last) {
		a.history = append(a.history, a.there)
		made = 2
	}
	a.history = append(a.history, wanted)
	a.history = a.history[max(0, len(a.history)-max(a.keep, made)):]
	a.there, a.foreign = maps.Clone(wanted), map[string]bool{}
}

func (a *archive) put(t *rapid.T, name, value string) {
	_, err := a.client.Put(context.Background(), a.prefix+name, value)
	require.NoError(t, err)
	a.there = maps.Clone(a.there)
	a.there[name], a.foreign[name] = value, true
}

func (a *archive) remove(t *rapid.T, name string) {
	_, err := a.client.Delete(context.Background(), a.prefix+name)
	require.NoError(t, err)
	a.there = maps.Clone(a.there)
	delete(a.there, name)
	delete(a.foreign, name)
}

// rollback pushes an entry of the history.
func (a *archive) rollback(t *rapid.T, back int) {
	revision := history(t, a.store)[back]
	a.push(t, at(t, a.store, revision.Revision))
}

func (a *archive) check(t *rapid.T) {
	assert.Equal(t, a.there, texts(pull(t, a.store)))
	revisions := history(t, a.store)
	require.Len(t, revisions, len(a.history))
	slices.Reverse(revisions)
	for i, revision := range revisions {
		assert.Equal(t, a.history[i], at(t, a.store, revision.Revision), "entry %d", i)
		assert.Equal(t, len(a.history[i]), revision.Documents)
		if i > 0 {
			assert.Greater(t, revision.Revision, revisions[i-1].Revision)
			assert.Equal(t, revision.Documents, revisions[i-1].Documents+revision.Added-revision.Removed)
		}
	}
}

func TestHistoryRestoresEveryRevisionExactly(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	client := dial(t, server.Endpoint())
	names := rapid.SampledFrom([]string{"a", "b", "c/d", "c/e.yaml", "ü"})
	data := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) })
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		a := &archive{
			client: client, prefix: fmt.Sprintf("/penstock/shop-%d/", round),
			there: map[string]string{}, foreign: map[string]bool{}, keep: rapid.IntRange(1, 20).Draw(t, "keep"),
		}
		var err error
		a.store, err = store.New(client, a.prefix)
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"push":   func(t *rapid.T) { a.push(t, rapid.MapOf(names, data).Draw(t, "documents")) },
			"put":    func(t *rapid.T) { a.put(t, names.Draw(t, "name"), data.Draw(t, "data")) },
			"remove": func(t *rapid.T) { a.remove(t, names.Draw(t, "name")) },
			"roll back": func(t *rapid.T) {
				if len(a.history) == 0 {
					t.Skip("nothing to roll back to")
				}
				a.rollback(t, rapid.IntRange(0, len(a.history)-1).Draw(t, "back"))
			},
		})
		a.check(t)
	})
}
