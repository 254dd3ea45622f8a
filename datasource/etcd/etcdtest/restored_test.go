package etcdtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// backup is a server that can be restored to revision 4, with the documents a and b.
// Every start begins a term, so a restored server has the same term as before.
type backup struct {
	*etcdtest.Server
	dir, copied string
}

func newBackup(t *testing.T) *backup {
	t.Helper()
	b := &backup{dir: t.TempDir(), copied: t.TempDir()}
	b.Server = start(t, etcdtest.Options{Dir: b.dir})
	put(t, b.Server, "a", "old")
	put(t, b.Server, "b", "old")
	require.EqualValues(t, 4, put(t, b.Server, "c", "old"))
	b.Stop()
	require.NoError(t, os.CopyFS(b.copied, os.DirFS(b.dir)))
	require.NoError(t, b.Restart())
	return b
}

// writeUntil writes until the server is at the revision. The last transaction
// writes both a and b.
func (b *backup) writeUntil(t *testing.T, revision int64, value string) {
	t.Helper()
	for commit(t, b.Server, clientv3.OpPut(prefix+"c", value)) < revision-1 {
	}
	require.Equal(t, revision, commit(t, b.Server, clientv3.OpPut(prefix+"a", value), clientv3.OpPut(prefix+"b", value)))
}

// restore restores the backup.
func (b *backup) restore(t *testing.T) {
	t.Helper()
	b.Stop()
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, "member")))
	require.NoError(t, os.CopyFS(b.dir, os.DirFS(b.copied)))
	require.NoError(t, b.Restart())
}

// position returns cluster and term of the server.
func (b *backup) position(t *testing.T) [2]uint64 {
	t.Helper()
	found, err := b.Client().Get(t.Context(), prefix, clientv3.WithCountOnly())
	require.NoError(t, err)
	return [2]uint64{found.Header.ClusterId, found.Header.RaftTerm}
}

// A cluster is restored at any point of a read and written to, past the revision
// that it had: neither cluster ID nor term nor revision show the restore.
func TestClusterRestoredDuringAReadIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pageSize int
		where    func(do func()) grpc.DialOption
	}{
		"before the watch":               {500, func(do func()) grpc.DialOption { return beforeWatch(1, do) }},
		"between the watch and the read": {500, func(do func()) grpc.DialOption { return beforeRange(1, do) }},
		"between two pages":              {1, func(do func()) grpc.DialOption { return afterRange(1, do) }},
		"after the last of some pages":   {1, func(do func()) grpc.DialOption { return afterRange(3, do) }},
		"after the only page":            {500, func(do func()) grpc.DialOption { return afterRange(1, do) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackup(t)
			b.writeUntil(t, 14, "read")
			before := b.position(t)
			opts := shortBackoff()
			opts.PageSize = test.pageSize
			var client *clientv3.Client
			client = dial(t, b.Endpoint(), test.where(func() {
				b.restore(t)
				b.writeUntil(t, 43, "restored")
				_, err := client.Get(t.Context(), prefix) // waits for the connection
				assert.NoError(t, err)
			}))
			source, err := etcd.New(client, prefix, opts)
			require.NoError(t, err)
			s := follow(t, source)
			want := map[string]string{"a": "restored", "b": "restored", "c": "restored"}
			s.AwaitDocuments(t, want)
			assert.Equal(t, before, b.position(t), "cluster and term")
			assert.NotContains(t, s.History("a"), "old")
			for _, change := range s.Changes() {
				require.True(t, change.Complete)
				assert.Equal(t, string(change.Documents[0].Data), string(change.Documents[1].Data), "a and b of one history")
			}
			put(t, b.Server, "a", "new")
			want["a"] = "new"
			s.AwaitDocuments(t, want)
		})
	}
}

// A proxy resumes its watch at a restored cluster without telling the source.
func TestMissedChangesAreFoundByComparison(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, server *etcdtest.Server){
		"written": func(t *testing.T, server *etcdtest.Server) { put(t, server, "a", "2") },
		"added":   func(t *testing.T, server *etcdtest.Server) { put(t, server, "c", "2") },
		"deleted": func(t *testing.T, server *etcdtest.Server) { remove(t, server, "b") },
		"confirmed": func(t *testing.T, server *etcdtest.Server) {
			keys, err := etcd.KeysOf(prefix)
			require.NoError(t, err)
			key, value := keys.Confirmation("somebody")
			commit(t, server, clientv3.OpPut(key, value))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			put(t, server, "a", "1")
			put(t, server, "b", "1")
			virtual := clock.NewVirtual(time.Now())
			opts := shortBackoff()
			opts.Clock, opts.WatchTimeout = virtual, 24*time.Hour
			opts.PageSize = 1
			var deaf atomic.Bool
			var compared atomic.Int64
			s := follow(t, newSource(t, server.Endpoint(), opts,
				onResponse(func(r *pb.WatchResponse) {
					if deaf.Load() {
						r.Events = nil
					}
				}),
				onRange(func(r *pb.RangeRequest) {
					if r.KeysOnly {
						compared.Add(1)
					}
				})))
			s.AwaitDocuments(t, map[string]string{"a": "1", "b": "1"})
			for range 3 { // without changes nothing is read again
				before := compared.Load()
				require.Eventually(t, func() bool {
					if compared.Load() >= before+2 {
						return true
					}
					// Not once only: no comparison begins while the one before is under way.
					virtual.Advance(75 * time.Second) // the longest pause
					return false
				}, eventTimeout, 10*time.Millisecond)
			}
			assert.Len(t, s.Changes(), 1)
			deaf.Store(true)
			change(t, server)
			require.Eventually(t, func() bool {
				if len(s.Errors()) == 0 {
					virtual.Advance(5 * time.Second)
					return false
				}
				deaf.Store(false)
				virtual.Advance(time.Second) // the pause before the next attempt
				return len(s.Changes()) == 2
			}, eventTimeout, 10*time.Millisecond)
			require.Len(t, s.Errors(), 1)
			require.ErrorContains(t, s.Errors()[0], "the watch has missed a change")
			found, err := server.Client().Get(t.Context(), prefix, clientv3.WithPrefix())
			require.NoError(t, err)
			assert.Equal(t, found.Header.Revision, s.Changes()[1].Revision)
			assert.True(t, s.Changes()[1].Complete)
		})
	}
}

// A change that the watch has not delivered yet is not reported as missed.
func TestDelayedChangesAreNotReportedAsMissed(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "0")
	virtual := clock.NewVirtual(time.Now())
	opts := shortBackoff()
	opts.Clock, opts.WatchTimeout = virtual, 24*time.Hour
	comparisons := make(chan struct{})
	var gate sync.Mutex // delays the responses of the watch
	s := follow(t, newSource(t, server.Endpoint(), opts,
		onResponse(func(*pb.WatchResponse) {
			gate.Lock()
			defer gate.Unlock()
		}),
		onRange(func(r *pb.RangeRequest) {
			if r.KeysOnly {
				select {
				case comparisons <- struct{}{}:
				case <-t.Context().Done(): // one more than the test waits for
				}
			}
		})))
	s.AwaitDocuments(t, map[string]string{"a": "0"})
	for i := range 5 {
		gate.Lock()
		text := fmt.Sprint(i + 1)
		put(t, server, "a", text)
		put(t, server, "b", text)
		require.Eventually(t, func() bool {
			select {
			case <-comparisons:
				return true
			default:
				virtual.Advance(5 * time.Second)
				return false
			}
		}, eventTimeout, 10*time.Millisecond)
		gate.Unlock()
		s.AwaitDocuments(t, map[string]string{"a": text, "b": text})
		require.Eventually(t, func() bool { return virtual.Timers() == 2 }, eventTimeout, time.Millisecond)
		virtual.Advance(20 * time.Second) // past the grace period of the comparison
	}
	assert.Empty(t, s.Errors())
}

// While documents are read, the server queues the changes.
func TestQueuedChangesDuringAReadAreBounded(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "0")
	reading, goOn := make(chan struct{}), make(chan struct{})
	var responses atomic.Int64
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff(),
		afterRange(1, func() {
			close(reading)
			<-goOn
		}),
		onResponse(func(*pb.WatchResponse) { responses.Add(1) })))
	<-reading
	value := string(make([]byte, 100_000))
	for i := range 300 {
		put(t, server, "b", fmt.Sprint(i, value))
	}
	last := put(t, server, "b", "last")
	const queued = 64 + 1 + 1 // in the channel, blocked on the channel, the confirmation of the watch
	require.Eventually(t, func() bool { return responses.Load() == queued }, eventTimeout, time.Millisecond)
	close(goOn)
	s.AwaitDocuments(t, map[string]string{"a": "0", "b": "last"})
	changes := s.Changes()
	assert.Equal(t, last, changes[len(changes)-1].Revision)
	assert.Empty(t, s.Errors())
	inOrder(t, s)
}
