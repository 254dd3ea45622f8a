package etcdtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// Random faults are injected into a list, etcd and the network. Only lists that were
// pushed are ever in force, whole, and after the faults the present one is.
func TestListsMatchEtcdAfterAnyFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, etcdtest.Options{Dir: dir})
	network := newProxy(t, server)
	end := time.Now().Add(faultDuration(t))
	rounds, failed := 0, false
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(end) && !failed {
			return
		}
		rounds++
		m := newListModel(t, server, network, dir, etcd.Prefix(fmt.Sprintf("shop-%d", rounds)))
		defer m.watch.Close()
		failed = true
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"push":    m.push,
			"half":    m.pushHalf,
			"damage":  m.damage,
			"delete":  m.delete,
			"compact": func(t *rapid.T) { (&faultModel{server: server}).compact(t) },
			"stop": func(t *rapid.T) {
				m.requireServer(t)
				server.Stop()
			},
			"start": m.start,
			"wipe":  m.wipe,
			"network": func(t *rapid.T) {
				rapid.SampledFrom([]func(){
					network.Cut, network.Stall, network.Restore, func() { network.ResetAfter(200_000) },
				}).Draw(t, "state")()
			},
			"pass": func(t *rapid.T) {
				time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(t, "milliseconds")) * time.Millisecond)
			},
			"recover": m.recoverAndCheck,
		})
		m.recoverAndCheck(t)
		failed = false
	})
	t.Logf("%d rounds", rounds)
}

// listModel is an etcd server, a registry that follows the lists of it, and a model.
type listModel struct {
	faultModel
	registry *list.Registry
	watch    *lists.Watch

	pushed  map[[32]byte]int // number of each version that was pushed, by its digest
	present int              // number of the version in etcd; 0 without one
	damaged bool             // what is in etcd may not be put in force
}

func newListModel(t *rapid.T, server *etcdtest.Server, network *proxy, dir, prefix string) *listModel {
	opts := shortTimeouts()
	opts.RequestTimeout = time.Second // a chunk takes longer than a document
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{network.endpoint()}}, prefix, opts)
	require.NoError(t, err)
	m := &listModel{
		faultModel: faultModel{server: server, network: network, dir: dir, prefix: prefix},
		registry:   list.NewRegistry(), pushed: make(map[[32]byte]int),
	}
	m.start(t)
	m.watch, err = source.WatchLists(context.Background(), m.registry)
	require.NoError(t, err)
	return m
}

// text returns the text of a version, of two chunks.
func (*listModel) text(version int) string {
	var text strings.Builder
	for i := range versionEntries {
		fmt.Fprintf(&text, "%d-%d-%s\n", version, i, strings.Repeat("x", 1000))
	}
	return text.String()
}

const versionEntries = 1500

func (m *listModel) store(t *rapid.T) *store.Store {
	s, err := store.New(m.server.Client(), m.prefix)
	require.NoError(t, err)
	return s
}

func (m *listModel) push(t *rapid.T) {
	m.requireServer(t)
	m.version++
	text := m.text(m.version)
	m.pushed[lists.DigestOf([]byte(text))] = m.version
	_, err := m.store(t).PushList(context.Background(), store.ListPush{Name: "l", Text: strings.NewReader(text)})
	require.NoError(t, err)
	m.present, m.damaged = m.version, false
}

// pushHalf pushes a version that does not come to its end, and perhaps leaves what it has
// written.
func (m *listModel) pushHalf(t *rapid.T) {
	m.requireServer(t)
	m.version++
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := m.store(t).PushList(ctx, store.ListPush{
		Name: "l", Text: strings.NewReader(m.text(m.version)), Progress: func(int64, int64) { cancel() },
	})
	require.Error(t, err)
}

// damage deletes or swaps chunks behind the back of everybody.
func (m *listModel) damage(t *rapid.T) {
	m.requireServer(t)
	digest := lists.DigestOf([]byte(m.text(m.present)))
	ctx, prefix := context.Background(), fmt.Sprintf("%s.lists/chunk/l/%x/", strings.TrimSuffix(m.prefix, "/"), digest)
	found, err := m.server.Client().Get(ctx, prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	if len(found.Kvs) < 2 {
		t.Skip("there is no list")
	}
	one := rapid.SampledFrom(found.Kvs).Draw(t, "chunk")
	if rapid.Bool().Draw(t, "deleted") {
		_, err = m.server.Client().Delete(ctx, string(one.Key))
	} else {
		_, err = m.server.Client().Put(ctx, string(one.Key), string(found.Kvs[0].Value))
	}
	require.NoError(t, err)
	m.damaged = true
}

func (m *listModel) delete(t *rapid.T) {
	m.requireServer(t)
	if _, err := m.store(t).DeleteList(context.Background(), "l", 0); m.present == 0 {
		require.ErrorIs(t, err, store.ErrNoList)
	} else {
		require.NoError(t, err)
	}
	m.present, m.damaged = 0, false
}

// wipe restarts the cluster without data.
func (m *listModel) wipe(t *rapid.T) {
	m.server.Stop()
	require.NoError(t, os.RemoveAll(filepath.Join(m.dir, "member")))
	require.NoError(t, m.server.Restart())
	m.present, m.damaged = 0, false
}

// check requires that the list in force, if there is one, is a whole version.
func (m *listModel) check(t *rapid.T) {
	for _, s := range m.registry.Status() {
		if !s.InForce {
			continue
		}
		version, ok := m.pushed[s.Digest]
		require.True(t, ok, "%x was never pushed", s.Digest)
		require.Equal(t, versionEntries, s.Entries)
		if l := m.registry.Get("l"); l != nil && m.registry.Status()[0].Digest == s.Digest {
			require.True(t, l.ContainsText(fmt.Sprintf("%d-%d-%s", version, versionEntries-1, strings.Repeat("x", 1000))))
		}
	}
}

// recoverAndCheck ends all faults and waits until the present version is in force, or one
// that is pushed if that is damaged.
func (m *listModel) recoverAndCheck(t *rapid.T) {
	m.start(t)
	m.network.Restore()
	if m.damaged {
		m.push(t)
	}
	m.await(t) // without a further write
	m.push(t)
	m.await(t)
	m.check(t)
	keys, err := m.server.Client().Get(context.Background(), strings.TrimSuffix(m.prefix, "/")+".lists/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	former, err := m.store(t).ListHistory(context.Background(), "l")
	require.NoError(t, err)
	require.LessOrEqual(t, keys.Count, int64(1+1+2*(1+len(former))), "manifest, history, and two chunks of each version: nothing is left of others")
}

func (m *listModel) await(t *rapid.T) {
	require.Eventually(t, func() bool {
		for _, s := range m.registry.Status() {
			if s.InForce {
				return m.pushed[s.Digest] == m.present
			}
		}
		return m.present == 0
	}, eventTimeout, time.Millisecond, "version %d, damaged %v: %v", m.present, m.damaged, m.registry.Status())
}
