package etcdtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

const listsPrefix = "/penstock/shop.lists/"

// listOf returns the text of a list that begins with the given entry and has n long ones,
// other ones for each first entry.
func listOf(entry string, n int) string {
	var text strings.Builder
	text.WriteString(entry + "\n")
	for i := range n {
		fmt.Fprintf(&text, "%s-%06d-%s\n", entry, i, strings.Repeat("x", 980))
	}
	return text.String()
}

const several = 3400 // entries that take four chunks

func pushList(t require.TestingT, s *store.Store, name, text string) store.ListInfo {
	info, err := s.PushList(context.Background(), store.ListPush{Name: name, Text: strings.NewReader(text)})
	require.NoError(t, err)
	return info
}

// watched is a watch of the lists of a server.
type watched struct {
	*lists.Watch
	registry *list.Registry
}

// watchLists watches lists until the test ends.
func watchLists(t *testing.T, source *etcd.Source) watched {
	t.Helper()
	registry := list.NewRegistry()
	watch, err := source.WatchLists(context.Background(), registry)
	require.NoError(t, err)
	t.Cleanup(watch.Close)
	return watched{watch, registry}
}

func (w watched) awaitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	require.NoError(t, w.Ready(ctx))
}

// await waits until the list in force has the entry.
func (w watched) await(t *testing.T, name, entry string) {
	t.Helper()
	require.Eventually(t, func() bool { return w.has(name, entry) }, eventTimeout, time.Millisecond, "%v", w.registry.Status())
}

func (w watched) has(name, entry string) bool {
	l := w.registry.Get(name)
	return l != nil && l.ContainsText(entry)
}

// awaitError waits until the present version of a list is rejected with a text.
func (w watched) awaitError(t *testing.T, name, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(w.registry.Status(), func(s list.Status) bool {
			return s.Name == name && s.Err != nil && strings.Contains(s.Err.Error(), text)
		})
	}, eventTimeout, time.Millisecond, "%v", w.registry.Status())
}

// chunkKeys returns the keys of all chunks of a list.
func chunkKeys(t *testing.T, server *etcdtest.Server, name string) (keys []string) {
	t.Helper()
	found, err := server.Client().Get(t.Context(), listsPrefix+"chunk/"+name+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	for _, pair := range found.Kvs {
		keys = append(keys, string(pair.Key))
	}
	return keys
}

func TestPushedListIsPutInForceAndReplaced(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	first := pushList(t, s, "scrapers", listOf("first", several))
	require.Len(t, chunkKeys(t, server, "scrapers"), 4)
	rules := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	w.awaitReady(t)
	status := w.registry.Status()[0]
	assert.True(t, status.InForce)
	assert.Equal(t, several+1, status.Entries)
	assert.Equal(t, first.Digest, fmt.Sprintf("%x", status.Digest))
	assert.True(t, w.has("scrapers", "first"))

	pushList(t, s, "scrapers", listOf("second", several))
	w.await(t, "scrapers", "second")
	assert.False(t, w.has("scrapers", "first"))
	require.Len(t, chunkKeys(t, server, "scrapers"), 4+4, "those of the version before are in the history")

	pushList(t, s, "partners", "a\n")
	w.await(t, "partners", "a")
	_, err := s.DeleteList(t.Context(), "scrapers", 0)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return slices.Equal(w.registry.Names(), []string{"partners"}) }, eventTimeout, time.Millisecond)
	assert.Len(t, chunkKeys(t, server, "scrapers"), 4+4)

	put(t, server, "rules", "1")
	rules.AwaitDocuments(t, map[string]string{"rules": "1"}) // and nothing of lists
	for _, change := range rules.Changes() {
		for _, d := range change.Documents {
			assert.Equal(t, "rules", d.Name)
		}
	}
}

func TestListsOfASourceWithItsOwnClient(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	s := newStore(t, server)
	pushList(t, s, "l", "a\n")
	opts := shortBackoff()
	opts.Instance = "pod-1"
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, prefix, opts)
	require.NoError(t, err)
	w := watchLists(t, source)
	w.awaitReady(t)
	instances, err := s.Instances(t.Context())
	require.NoError(t, err)
	assert.Empty(t, instances, "only the run of the rules reports")

	server.Stop()
	require.Eventually(t, func() bool { return !w.Status().Connected }, eventTimeout, time.Millisecond)
	assert.True(t, w.has("l", "a"), "lists stay while etcd is down")
	require.NoError(t, server.Restart())
	pushList(t, s, "l", listOf("b", several))
	w.await(t, "l", "b")
}

func TestListsOfAServerThatStartsLater(t *testing.T) {
	server := start(t, etcdtest.Options{})
	server.Stop()
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	require.Eventually(t, func() bool { return w.Status().Err != nil }, eventTimeout, time.Millisecond)
	require.NoError(t, server.Restart())
	pushList(t, newStore(t, server), "l", "a\n")
	w.await(t, "l", "a")
}

// An upload that was not finished, or is under way, is not seen by anybody.
func TestHalfOfAnUploadIsNeverPutInForce(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	pushList(t, s, "l", "a\n")
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	w.awaitReady(t)
	ctx, cancel := context.WithCancel(t.Context())
	killed := newStore(t, server, beforePut("/000002", cancel), failDeletions())
	_, err := killed.PushList(ctx, store.ListPush{Name: "l", Text: strings.NewReader(listOf("b", several))})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, chunkKeys(t, server, "l"), 3, "one of the present list, two of the upload")

	pushList(t, s, "other", "c\n")
	w.await(t, "other", "c")
	assert.True(t, w.has("l", "a"))
	pushList(t, s, "l", "d\n")
	w.await(t, "l", "d")
	assert.Len(t, chunkKeys(t, server, "l"), 2, "the next push has removed what was left; the version before is in the history")
}

// failDeletions makes all transactions of a client fail that delete something, as if it
// had been killed.
func failDeletions() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		r, _ := request.(*pb.TxnRequest)
		for _, op := range r.GetSuccess() {
			if op.GetRequestDeleteRange() != nil {
				return errors.New("killed")
			}
		}
		return invoke(ctx, method, request, reply, cc, opts...)
	})
}

// beforePut calls do once, before the first transaction that writes a key with the part.
func beforePut(part string, do func()) grpc.DialOption {
	var once sync.Once
	return onRequest(func(request any) {
		r, _ := request.(*pb.TxnRequest)
		for _, op := range r.GetSuccess() {
			if strings.Contains(string(op.GetRequestPut().GetKey()), part) {
				once.Do(do)
			}
		}
	})
}

func TestCancelledPushCleansUpAfterItself(t *testing.T) {
	server := start(t, etcdtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s := newStore(t, server, beforePut("/000002", cancel))
	_, err := s.PushList(ctx, store.ListPush{Name: "l", Text: strings.NewReader(listOf("b", several))})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, chunkKeys(t, server, "l"))
}

func TestDamagedListIsNotPutInForceAndAPushRepairsIt(t *testing.T) {
	text := listOf("b", several)
	for name, test := range map[string]struct {
		damage func(t *testing.T, server *etcdtest.Server, keys []string)
		says   string
	}{
		"a missing chunk": {func(t *testing.T, server *etcdtest.Server, keys []string) {
			commit(t, server, clientv3.OpDelete(keys[1]))
		}, "only 3 of the 4 chunks"},
		"a chunk of another name": {func(t *testing.T, server *etcdtest.Server, keys []string) {
			commit(t, server, clientv3.OpDelete(keys[1]), clientv3.OpPut(keys[3]+"x", ""))
		}, "000001 is missing"},
		"chunks in another order": {func(t *testing.T, server *etcdtest.Server, keys []string) {
			one, err := server.Client().Get(t.Context(), keys[0])
			require.NoError(t, err)
			commit(t, server, clientv3.OpPut(keys[1], string(one.Kvs[0].Value)))
		}, "not"},
		"a chunk that is none": {func(t *testing.T, server *etcdtest.Server, keys []string) {
			commit(t, server, clientv3.OpPut(keys[1], "hello"))
		}, "is damaged"},
		"a chunk that is too short": {func(t *testing.T, server *etcdtest.Server, keys []string) {
			last, err := server.Client().Get(t.Context(), keys[3])
			require.NoError(t, err)
			commit(t, server, clientv3.OpPut(keys[1], string(last.Kvs[0].Value)))
		}, "does not have the 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			s := newStore(t, server)
			pushList(t, s, "l", "a\n")
			w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
			w.awaitReady(t)

			// The damage is done before anybody sees the manifest.
			keys := func() (found []string) {
				for _, key := range chunkKeys(t, server, "l") {
					if strings.Contains(key, digest(text)) {
						found = append(found, key)
					}
				}
				return found
			}
			damaging := newStore(t, server, beforePut("/manifest/", func() { test.damage(t, server, keys()) }))
			pushed := pushList(t, damaging, "l", text)
			w.awaitError(t, "l", test.says)
			assert.True(t, w.has("l", "a"))
			assert.Equal(t, digest("a\n"), fmt.Sprintf("%x", w.registry.Status()[0].Digest))
			_, err := s.PullList(t.Context(), "l", 0, io.Discard, nil)
			require.ErrorContains(t, err, test.says)

			again := pushList(t, s, "l", text)
			assert.Greater(t, again.Revision, pushed.Revision)
			w.await(t, "l", "b")
			assert.NoError(t, w.registry.Status()[0].Err)
		})
	}
}

func digest(text string) string {
	d := lists.DigestOf([]byte(text))
	return fmt.Sprintf("%x", d)
}

func TestManifestThatIsNoneLeavesTheListInForce(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	pushList(t, s, "l", "a\n")
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	w.awaitReady(t)
	for value, says := range map[string]string{
		"":                            "is damaged",
		"{}":                          "version 0",
		`{"version": 2}`:              "version 2",
		`{"version": 1, "size": 1}`:   "1 bytes in 0 chunks",
		`{"version": 1, "size": -1}`:  "cannot be",
		`{"version":1,"digest":"ab"}`: "is not a SHA-256",
		`{"version":1,"size":9223372036854775807,"chunks":1}`: "cannot be",
	} {
		commit(t, server, clientv3.OpPut(listsPrefix+"manifest/l", value))
		w.awaitError(t, "l", says)
		assert.True(t, w.has("l", "a"))
		infos, err := s.Lists(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, infos[0].Err, says)
	}
	pushList(t, s, "l", "b\n")
	w.await(t, "l", "b")
}

func TestTextWithMistakesLeavesTheListInForce(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	pushList(t, s, "l", "a\n")
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	w.awaitReady(t)
	pushList(t, s, "l", strings.Repeat("x", 1<<20))
	require.Eventually(t, func() bool { return w.registry.Status()[0].Err != nil }, eventTimeout, time.Millisecond)
	assert.True(t, w.has("l", "a"))
	w.awaitReady(t)
}

// A reader that has begun with one version while the next one is pushed, or while etcd
// compacts what it reads, comes to the next one and never mixes both.
func TestListThatIsReplacedWhileItIsRead(t *testing.T) {
	for name, compacts := range map[string]bool{"and compacted": true, "and not compacted": false} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			s := newStore(t, server)
			pushList(t, s, "l", listOf("a", several))
			var once sync.Once
			opts := shortBackoff()
			source := newSource(t, server.Endpoint(), opts, onRange(func(r *pb.RangeRequest) {
				if strings.HasSuffix(string(r.Key), "/000001") {
					once.Do(func() {
						pushList(t, s, "l", listOf("b", several))
						if compacts {
							compact(t, server, put(t, server, "now", "1"))
						}
					})
				}
			}))
			w := watchLists(t, source)
			w.await(t, "l", "b")
			assert.False(t, w.has("l", "a"))
			assert.Equal(t, several+1, w.registry.Get("l").Len())
		})
	}
}

func TestListsOfARestoredClusterAreRead(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	pushList(t, newStore(t, server), "gone", "a\n")
	pushList(t, newStore(t, server), "l", listOf("a", several))
	w := watchLists(t, newSource(t, network.endpoint(), shortBackoff()))
	w.awaitReady(t)
	network.Cut()
	server.Stop() // removes the data
	require.NoError(t, server.Restart())
	pushList(t, newStore(t, server), "l", listOf("b", several))
	assert.True(t, w.has("l", "a"))
	network.Restore()
	w.await(t, "l", "b")
	require.Eventually(t, func() bool { return w.registry.Get("gone") == nil }, eventTimeout, time.Millisecond)
}

func TestConnectionThatIsLostWhileAListIsReadLosesNothing(t *testing.T) {
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	s := newStore(t, server)
	pushList(t, s, "l", "a\n")
	var once sync.Once
	w := watchLists(t, newSource(t, network.endpoint(), shortBackoff(), onRange(func(r *pb.RangeRequest) {
		if strings.HasSuffix(string(r.Key), "/000002") {
			once.Do(network.Cut)
		}
	})))
	w.awaitReady(t)
	pushList(t, s, "l", listOf("b", several))
	require.Eventually(t, func() bool { return !w.Status().Connected }, eventTimeout, time.Millisecond)
	assert.True(t, w.has("l", "a"))
	network.Restore()
	w.await(t, "l", "b")
}

func TestOneOfConcurrentPushesOfAListSucceeds(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	base := pushList(t, s, "l", "a\n")
	w := watchLists(t, newSource(t, server.Endpoint(), shortBackoff()))
	w.awaitReady(t)
	const n = 4
	var pushes sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		pushes.Go(func() {
			_, errs[i] = s.PushList(t.Context(), store.ListPush{
				Name: "l", Text: strings.NewReader(listOf(fmt.Sprint(i), several)), Expect: base.Revision,
			})
		})
	}
	pushes.Wait()
	won := slices.Index(errs, nil)
	require.GreaterOrEqual(t, won, 0)
	for i, err := range errs {
		if i != won {
			require.ErrorIs(t, err, store.ErrConflict)
		}
	}
	w.await(t, "l", fmt.Sprint(won))
	assert.Len(t, chunkKeys(t, server, "l"), 4+1, "nothing is left of the others; the first one is in the history")
	var text bytes.Buffer
	_, err := s.PullList(t.Context(), "l", 0, &text, nil)
	require.NoError(t, err)
	assert.Equal(t, listOf(fmt.Sprint(won), several), text.String())
}

// A list that is pushed and deleted again during a push leaves the manifest as it was, but
// takes the chunks along.
func TestPushNoticesThatItsChunksWereDeleted(t *testing.T) {
	server := start(t, etcdtest.Options{})
	other := newStore(t, server)
	s := newStore(t, server, beforePut("/manifest/", func() {
		pushList(t, other, "l", "a\n")
		_, err := other.DeleteList(context.Background(), "l", 0)
		require.NoError(t, err)
	}))
	_, err := s.PushList(t.Context(), store.ListPush{Name: "l", Text: strings.NewReader(listOf("b", several))})
	require.ErrorIs(t, err, store.ErrConflict)
	assert.Len(t, chunkKeys(t, server, "l"), 1, "that of the list that was deleted is in the history")
}

func TestListComesBackAsItWasPushed(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	text := "\ufeff# Größe\r\n\r\n10.0.0.0/8\r\n" + listOf("x", several)
	var steps []int64
	pushed, err := s.PushList(t.Context(), store.ListPush{
		Name: "l", Text: strings.NewReader(text), Entries: 7, Author: "alice", Message: "why",
		Progress: func(done, size int64) {
			assert.Equal(t, int64(len(text)), size)
			steps = append(steps, done)
		},
	})
	require.NoError(t, err)
	assert.Len(t, steps, 4)
	assert.Equal(t, int64(len(text)), steps[3])
	assert.Equal(t, digest(text), pushed.Digest)

	var back bytes.Buffer
	pulled, err := s.PullList(t.Context(), "l", 0, &back, func(done, size int64) { assert.LessOrEqual(t, done, size) })
	require.NoError(t, err)
	assert.Equal(t, text, back.String())
	assert.Equal(t, pushed.Time.Unix(), pulled.Time.Unix())
	pulled.Time = pushed.Time
	assert.Equal(t, pushed, pulled)
	one, err := s.List(t.Context(), "l")
	require.NoError(t, err)
	all, err := s.Lists(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []store.ListInfo{one}, all)
	assert.Equal(t, pushed.Revision, pushList(t, s, "l", text).Revision, "the same text is not written again")
}

func TestListsThatAreNotThereAndMistakesInPushes(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	_, err := s.List(t.Context(), "l")
	require.ErrorIs(t, err, store.ErrNoList)
	_, err = s.PullList(t.Context(), "l", 0, io.Discard, nil)
	require.ErrorIs(t, err, store.ErrNoList)
	_, err = s.DeleteList(t.Context(), "l", 0)
	require.ErrorIs(t, err, store.ErrNoList)
	all, err := s.Lists(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)

	for says, push := range map[string]store.ListPush{
		"slashes":     {Name: "a/b", Text: strings.NewReader("x")},
		"Text is nil": {Name: "l"},
		"is empty":    {Name: "l", Text: strings.NewReader("")},
	} {
		_, err := s.PushList(t.Context(), push)
		require.ErrorContains(t, err, says)
	}
	first := pushList(t, s, "l", "a\n")
	_, err = s.PushList(t.Context(), store.ListPush{Name: "l", Text: strings.NewReader("b"), Expect: first.Revision + 1})
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = s.DeleteList(t.Context(), "l", first.Revision+1)
	require.ErrorIs(t, err, store.ErrConflict)
	assert.Len(t, chunkKeys(t, server, "l"), 1)
}

func TestTextThatChangesDuringAPushIsNotPushed(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	for name, later := range map[string]string{"other bytes": "b", "fewer bytes": ""} {
		_, err := s.PushList(t.Context(), store.ListPush{Name: "l", Text: &changing{texts: []string{"a", later}}})
		require.ErrorContains(t, err, "changed", name)
		assert.Empty(t, chunkKeys(t, server, "l"))
	}
}

// changing is a text that is another one each time it is read from its start.
type changing struct {
	texts []string
	*strings.Reader
}

func (c *changing) Seek(int64, int) (int64, error) {
	c.Reader = strings.NewReader(c.texts[0])
	c.texts = c.texts[1:]
	return 0, nil
}

func TestPasswordsAndEntriesAreNotLogged(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	s, err := store.New(root, prefix)
	require.NoError(t, err)
	pushList(t, s, "l", "entry-1\n")
	var log lockedBuffer
	opts := shortBackoff()
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	open := func(user, password string) watched {
		source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}, Username: user, Password: password}, prefix, opts)
		require.NoError(t, err)
		return watchLists(t, source)
	}
	wrong := open("reader", "secret-1")
	require.Eventually(t, func() bool { return wrong.Status().Err != nil }, eventTimeout, time.Millisecond)
	w := open("root", "root")
	w.awaitReady(t)
	pushList(t, s, "l", "10.0.0.0/8\nentry-2\n10.0.0.0/entry-3\n")
	for _, line := range []string{"list in force", "is not put in force"} { // which is logged after the status says so
		require.Eventually(t, func() bool { return strings.Contains(log.String(), line) }, eventTimeout, time.Millisecond, line)
	}
	assert.NotContains(t, log.String(), "secret-1")
	assert.NotContains(t, log.String(), "entry-")
}

func TestListIsReadOnceItsPermissionIsGranted(t *testing.T) {
	server, root := secured(t, etcdtest.Options{})
	s, err := store.New(root, prefix)
	require.NoError(t, err)
	pushList(t, s, "l", "a\n")
	grant := func(keys string) {
		_, err := root.RoleGrantPermission(t.Context(), "rules", keys, clientv3.GetPrefixRangeEnd(keys), clientv3.PermissionType(clientv3.PermRead))
		require.NoError(t, err)
	}
	_, err = root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	w := watchLists(t, reader(t, server.Endpoint(), "reader").(*etcd.Source))
	require.Eventually(t, func() bool { return errors.Is(w.Status().Err, rpctypes.ErrPermissionDenied) }, eventTimeout, time.Millisecond)
	grant(listsPrefix + "manifest/")
	w.awaitError(t, "l", "permission denied")
	assert.Nil(t, w.registry.Get("l"))
	grant(listsPrefix)
	w.await(t, "l", "a")
}

// lockedBuffer is a buffer that may be read while it is written to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
