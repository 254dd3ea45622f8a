package etcdtest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestFirstReadIsCompleteForAnyPageSize(t *testing.T) {
	for name, pageSize := range map[string]int{"one page": 500, "several pages": 7, "full last page": 10, "page of one": 1} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			want := putMany(t, server, 30)
			revision := put(t, server, "last", "x")
			want["last"] = "x"

			opts := shortBackoff()
			opts.PageSize = pageSize
			s := follow(t, newSource(t, server.Endpoint(), opts))

			s.AwaitDocuments(t, want)
			first := s.Changes()[0]
			assert.True(t, first.Complete)
			assert.Equal(t, revision, first.Revision)
			for _, d := range first.Documents {
				assert.Positive(t, d.Revision)
				assert.LessOrEqual(t, d.Revision, revision)
			}
		})
	}
}

func TestPagesAreReadAtOneRevision(t *testing.T) {
	server := start(t, etcdtest.Options{})
	before := putMany(t, server, 10)
	opts := shortBackoff()
	opts.PageSize = 3
	writeInBetween := afterRange(1, func() {
		commit(t, server,
			clientv3.OpPut(prefix+"document-00009", "new"),
			clientv3.OpPut(prefix+"added", "new"),
			clientv3.OpDelete(prefix+"document-00008"))
	})
	s := follow(t, newSource(t, server.Endpoint(), opts, writeInBetween))

	after := maps.Clone(before)
	after["document-00009"], after["added"] = "new", "new"
	delete(after, "document-00008")
	s.AwaitDocuments(t, after)

	changes := s.Changes()
	require.Len(t, changes, 2)
	read := map[string]string{}
	for _, d := range changes[0].Documents {
		read[d.Name] = string(d.Data)
	}
	assert.Equal(t, before, read, "the first change is the prefix as it was at the first page")
}

func TestReadsAreLinearizable(t *testing.T) {
	server := start(t, etcdtest.Options{})
	putMany(t, server, 3)
	opts := shortBackoff()
	opts.PageSize = 1
	serializable := make(chan bool, 10)
	s := follow(t, newSource(t, server.Endpoint(), opts, onRange(func(r *pb.RangeRequest) { serializable <- r.Serializable })))
	require.Eventually(t, func() bool { return len(s.Changes()) == 1 }, eventTimeout, time.Millisecond)
	require.Len(t, serializable, 3)
	for range 3 {
		assert.False(t, <-serializable)
	}
}

func TestTransactionIsOneChange(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "old", "1")
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{"old": "1"})

	revision := commit(t, server,
		clientv3.OpPut(prefix+"a", "1"), clientv3.OpPut(prefix+"b", "2"), clientv3.OpDelete(prefix+"old"))

	s.AwaitDocuments(t, map[string]string{"a": "1", "b": "2"})
	changes := s.Changes()
	require.Len(t, changes, 2)
	assert.Equal(t, core.Change{
		Documents: []core.Document{
			{Name: "a", Revision: revision, Created: revision, Data: []byte("1")},
			{Name: "b", Revision: revision, Created: revision, Data: []byte("2")},
		},
		Removed:  []string{"old"},
		Revision: revision,
	}, changes[1])
}

func TestKeysOutsideThePrefixAreIgnored(t *testing.T) {
	neighbours := []string{"/penstock/shop", "/penstock/shop/", "/penstock/shopping/a", "/penstock/shop0", "/penstock/", "/a", "z"}
	server := start(t, etcdtest.Options{})
	for _, key := range neighbours {
		commit(t, server, clientv3.OpPut(key, "before"))
	}
	source, err := etcd.New(dial(t, server.Endpoint()), "/penstock/shop", shortBackoff())
	require.NoError(t, err)
	s := follow(t, source)
	s.AwaitDocuments(t, map[string]string{})

	for _, key := range neighbours {
		commit(t, server, clientv3.OpPut(key, "after"))
	}
	put(t, server, "a", "1")
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	assert.Len(t, s.Changes(), 2)
}

func TestTooLongDocumentIsDeliveredWithAnError(t *testing.T) {
	server := start(t, etcdtest.Options{})
	longest := strings.Repeat("x", etcd.MaxDocumentSize)
	put(t, server, "longest", longest)
	put(t, server, "longer", longest+"x")
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{"longest": longest})
	require.ErrorContains(t, s.Fault("longer"), "at most 1048576")

	put(t, server, "longer", "short")
	s.AwaitDocuments(t, map[string]string{"longest": longest, "longer": "short"})
	put(t, server, "longer", longest+"x")
	require.Eventually(t, func() bool { return len(s.Changes()) == 3 }, eventTimeout, time.Millisecond)
	assert.Error(t, s.Changes()[2].Documents[0].Err)
}

// Anybody who may write documents chooses their names, which stand in every status and report.
func TestDocumentWithALongNameIsDeliveredWithAnErrorAndAShortName(t *testing.T) {
	server := start(t, etcdtest.Options{})
	long := strings.Repeat("n", 1025)
	put(t, server, long[1:], "longest")
	put(t, server, long+"1", "1")
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff()))
	s.AwaitDocuments(t, map[string]string{long[1:]: "longest"})
	put(t, server, long+"2", "2")
	require.Eventually(t, func() bool { return len(s.Changes()) == 2 }, eventTimeout, time.Millisecond)
	var names []string
	for _, c := range s.Changes() {
		for _, d := range c.Documents {
			if d.Err == nil {
				continue
			}
			require.ErrorContains(t, d.Err, "has 1026 bytes, at most 1024 are read: shorten it")
			assert.Less(t, len(d.Err.Error())+len(d.Name), 700)
			assert.Positive(t, d.Revision)
			names = append(names, d.Name)
		}
	}
	require.Len(t, names, 2)
	assert.NotEqual(t, names[0], names[1])

	remove(t, server, long+"1")
	require.Eventually(t, func() bool { return len(s.Changes()) == 3 }, eventTimeout, time.Millisecond)
	assert.Equal(t, names[:1], s.Changes()[2].Removed)
	assert.Equal(t,
		etcd.DigestOf([]etcd.DocumentRevision{{Name: long + "2", Revision: 7}}),
		etcd.DigestOf([]etcd.DocumentRevision{{Name: names[1], Revision: 7}}),
		"what is in etcd, and what an instance reports")
}

func TestTooManyDocumentsAreNotApplied(t *testing.T) {
	tooMany := func(err error) bool { return strings.Contains(err.Error(), "MaxDocuments") }
	opts := shortBackoff()
	opts.MaxDocuments = 2

	t.Run("at the first read", func(t *testing.T) {
		server := start(t, etcdtest.Options{})
		putMany(t, server, 3)
		s := follow(t, newSource(t, server.Endpoint(), opts))
		s.AwaitError(t, tooMany)
		assert.Empty(t, s.Changes())

		remove(t, server, "document-00000")
		s.AwaitDocuments(t, map[string]string{"document-00001": "value 1", "document-00002": "value 2"})
	})

	t.Run("later", func(t *testing.T) {
		server := start(t, etcdtest.Options{})
		want := putMany(t, server, 2)
		s := follow(t, newSource(t, server.Endpoint(), opts))
		s.AwaitDocuments(t, want)

		put(t, server, "third", "x")
		s.AwaitError(t, tooMany)
		assert.Equal(t, want, s.Documents())

		commit(t, server, clientv3.OpDelete(prefix+"third"), clientv3.OpPut(prefix+"document-00000", "new"))
		want["document-00000"] = "new"
		s.AwaitDocuments(t, want)
		disconnections := len(s.Errors())

		commit(t, server, clientv3.OpDelete(prefix+"document-00000"), clientv3.OpPut(prefix+"instead", "x"))
		s.AwaitDocuments(t, map[string]string{"document-00001": "value 1", "instead": "x"})
		assert.Len(t, s.Errors(), disconnections, "one that is gone makes room")
	})
}

// Changes arrive as new events of the watch. The server need not search for them in
// earlier writes, which takes it up to 100 ms.
func TestChangesArriveWithoutDelay(t *testing.T) {
	server := start(t, etcdtest.Options{})
	var reads atomic.Int64
	watches := make(chan *pb.WatchCreateRequest, 10)
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff(),
		onRange(func(*pb.RangeRequest) { reads.Add(1) }),
		onWatchRequest(func(r *pb.WatchRequest) {
			if created := r.GetCreateRequest(); created != nil {
				watches <- created
			}
		})))
	s.AwaitDocuments(t, map[string]string{})
	assert.Zero(t, (<-watches).StartRevision, "from now on")

	const puts = 50
	latencies := make([]time.Duration, puts)
	for i := range puts {
		began := time.Now()
		put(t, server, "a", began.String())
		s.AwaitDocuments(t, map[string]string{"a": began.String()})
		latencies[i] = time.Since(began)
	}
	slices.Sort(latencies)
	t.Logf("from put to Apply: median %v, longest %v", latencies[puts/2], latencies[puts-1])
	assert.EqualValues(t, 1, reads.Load(), "nothing is read after the first time")
	assert.Empty(t, s.Errors())
}

func TestSourceCanBeFollowedTwiceAtOnceAndAgain(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	want := map[string]string{"a": "1"}
	source := newSource(t, server.Endpoint(), shortBackoff())
	follow(t, source).AwaitDocuments(t, want)
	follow(t, source).AwaitDocuments(t, want)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, source.Run(ctx, &sourcetest.Recorder{}), context.Canceled)
	follow(t, source).AwaitDocuments(t, want)
}

func TestRunEndsWhenTheCallersClientIsClosed(t *testing.T) {
	for name, closeBefore := range map[string]bool{"before": true, "while it watches": false} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			client := dial(t, server.Endpoint())
			source, err := etcd.New(client, prefix, shortBackoff())
			require.NoError(t, err)
			s := &sourcetest.Recorder{}
			if closeBefore {
				require.NoError(t, client.Close())
			}
			ended := make(chan error, 1)
			go func() { ended <- source.Run(t.Context(), s) }()
			if !closeBefore {
				s.AwaitDocuments(t, map[string]string{})
				require.NoError(t, client.Close())
			}

			require.ErrorIs(t, <-ended, etcd.ErrClientClosed)
			require.Len(t, s.Errors(), 1)
			assert.ErrorIs(t, s.Errors()[0], etcd.ErrClientClosed)
		})
	}
}
