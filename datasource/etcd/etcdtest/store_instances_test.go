package etcdtest_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// instance is a sink that reports no revision later than its limit, and the documents of
// its last change.
type instance struct {
	sourcetest.Recorder
	limit atomic.Int64
}

func (*instance) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

func (i *instance) Status() core.SourceStatus {
	status := core.SourceStatus{Connected: true}
	if changes := i.Changes(); len(changes) > 0 {
		last := changes[len(changes)-1]
		status.Revision = min(last.Revision, i.limit.Load())
		for _, d := range last.Documents {
			status.Documents = append(status.Documents, core.DocumentStatus{Name: d.Name, Revision: d.Revision})
		}
	}
	return status
}

// run runs the source until the test ends or the function returned is called.
func run(t *testing.T, source core.Source, to core.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(t, source.Run(ctx, to), context.Canceled)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// lag starts an instance that applies no revision later than the limit.
func lag(t *testing.T, server *etcdtest.Server, name string, limit int64) (i *instance, stop func()) {
	t.Helper()
	i = &instance{}
	i.limit.Store(limit)
	stop = run(t, newSource(t, server.Endpoint(), reporting(name)), i)
	awaitReport(t, server.Client(), name, anyReport)
	return i, stop
}

func waitedFor(reports []etcd.Report) (names []string) {
	for _, r := range reports {
		names = append(names, r.Instance)
	}
	return names
}

func TestInstancesAreThoseThatReport(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	found, err := s.Instances(t.Context())
	require.NoError(t, err)
	assert.Empty(t, found)

	_, stop := lag(t, server, "b", 0)
	lag(t, server, "a", 0)
	lag(t, server, "c:8080 (canary)", 0)
	found, err = s.Instances(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c:8080 (canary)"}, waitedFor(found))
	stop()
	found, err = s.Instances(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c:8080 (canary)"}, waitedFor(found))
}

func TestUnreadableReportsAreListedSeparately(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	lag(t, server, "a", 1<<62)
	pushed := push(t, s, map[string]string{"orders.yaml": closed})
	report, _, _ := reported(t, server.Client(), "a")
	copied, err := json.Marshal(report)
	require.NoError(t, err)
	garbage := map[string]string{
		"text": "no report", "empty": "", "null": "null", "object": "{}", "list": "[]", "\xff": "\xff",
		"other": string(copied), "cut": string(copied[:len(copied)/2]), "deeper/a": string(copied),
	}
	for name, value := range garbage {
		commit(t, server, clientv3.OpPut(instances+name, value))
	}
	found, err := s.Reports(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, waitedFor(found.Instances))
	require.Len(t, found.Unreadable, len(garbage))
	for _, u := range found.Unreadable {
		assert.Contains(t, garbage, strings.TrimPrefix(u.Key, instances))
		require.ErrorContains(t, u.Err, "store: no report of ")
	}
	require.NoError(t, s.WaitFor(t.Context(), pushed.Revision, nil), "nobody waits for what is no instance")
}

func TestWaitForInstancesThatLagStopAndStart(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	require.NoError(t, s.WaitFor(t.Context(), 1000, nil), "there are no instances")

	report(t, newSource(t, server.Endpoint(), reporting("prompt")))
	slow, _ := lag(t, server, "slow", 0)
	_, stop := lag(t, server, "stopping", 0)
	pushed := push(t, s, map[string]string{"orders.yaml": closed})
	awaitReport(t, server.Client(), "prompt", since(pushed.Revision))

	waiting := make(chan []string)
	done := make(chan error, 1)
	go func() {
		done <- s.WaitFor(t.Context(), pushed.Revision, func(r []etcd.Report) { waiting <- waitedFor(r) })
	}()
	assert.Equal(t, []string{"slow", "stopping"}, <-waiting)
	stop()
	assert.Equal(t, []string{"slow"}, <-waiting)
	late, _ := lag(t, server, "late", 0)
	assert.Equal(t, []string{"late", "slow"}, <-waiting)
	for _, i := range []*instance{slow, late} {
		i.limit.Store(1 << 62)
	}
	push(t, s, nil) // makes them report
	for {
		select {
		case left := <-waiting: // one may be seen before the others, and none has read the push at first
			assert.Subset(t, []string{"late", "prompt", "slow"}, left)
		case err := <-done:
			require.NoError(t, err)
			return
		}
	}
}

// A deletion lowers the highest revision of the documents, and a cluster that was replaced
// begins with low ones: an instance that has not read them is behind all the same.
func TestInstanceWithOtherDocumentsIsNotAtTheRevision(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, server *etcdtest.Server){
		"a deletion": func(t *testing.T, server *etcdtest.Server) {
			commit(t, server, clientv3.OpDelete(prefix+"c"))
		},
		"a change that was undone": func(t *testing.T, server *etcdtest.Server) {
			put(t, server, "c", "2")
			commit(t, server, clientv3.OpDelete(prefix+"c"))
		},
		"another document in its place": func(t *testing.T, server *etcdtest.Server) {
			commit(t, server, clientv3.OpDelete(prefix+"c"), clientv3.OpPut(prefix+"d", closed))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, etcdtest.Options{})
			network := newProxy(t, server)
			s := newStore(t, server)
			for _, document := range []string{"a", "b", "c"} {
				put(t, server, document, closed)
			}
			report(t, newSource(t, network.endpoint(), reporting("a")))
			awaitReport(t, server.Client(), "a", func(r etcd.Report) bool { return r.Documents == 3 })
			found, err := s.Deployment(t.Context())
			require.NoError(t, err)
			assert.True(t, found.IsAt(found.Revision, found.Instances[0]))

			network.Stall()
			change(t, server)
			found, err = s.Deployment(t.Context())
			require.NoError(t, err)
			require.Len(t, found.Instances, 1)
			assert.False(t, found.IsAt(found.Revision, found.Instances[0]), "%+v", found)

			network.Restore()
			ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
			defer cancel()
			require.NoError(t, s.WaitFor(ctx, found.Revision, nil))
		})
	}
}

func TestWaitForReturnsWhenItsContextEnds(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	lag(t, server, "slow", 0)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.WaitFor(ctx, 5, func([]etcd.Report) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "store: waiting for slow to report revision 5: context canceled")
	err = s.WaitFor(ctx, 5, nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "waiting for instances")
}

func TestWaitForGoesOnWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	slow, _ := lag(t, server, "slow", 0)
	var reads atomic.Int64
	var isAway func(read int64) bool
	s := newStore(t, server, grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		if _, ok := request.(*pb.TxnRequest); ok && isAway(reads.Add(1)) {
			return status.Error(codes.Unavailable, "error reading from server: EOF")
		}
		return invoke(ctx, method, request, reply, cc, opts...)
	}))

	ctx, cancel := context.WithCancel(t.Context())
	isAway = func(read int64) bool {
		if read == 3 {
			cancel()
		}
		return read > 1
	}
	err := s.WaitFor(ctx, 1<<62, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "waiting for slow to report revision 4611686018427387904: context canceled")
	require.ErrorContains(t, err, "EOF")

	reads.Store(0)
	isAway = func(read int64) bool { return read == 2 || read == 3 }
	ctx, cancel = context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	require.NoError(t, s.WaitFor(ctx, 1, func([]etcd.Report) {
		slow.limit.Store(1 << 62)
		put(t, server, "a", time.Now().String())
	}))
	assert.GreaterOrEqual(t, reads.Load(), int64(4))
}

func TestEngineAppliesPushesAndRollbacks(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	s := newStore(t, server)
	engine, _ := report(t, newSource(t, server.Endpoint(), reporting("a")))
	awaitReport(t, server.Client(), "a", anyReport)
	apply := func(documents []store.Document) store.Revision {
		ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
		defer cancel()
		pushed, err := s.Push(ctx, store.Push{Documents: documents, Expect: pull(t, s).Revision})
		require.NoError(t, err)
		require.NoError(t, s.WaitFor(ctx, pushed.Revision, nil))
		return pushed
	}
	open := apply(documents(map[string]string{"other.yaml": "flow:\n  - resource: other\n    limit: 0\n"}))
	for range 10 {
		require.True(t, passes(t, engine))
		apply(documents(map[string]string{"orders.yaml": closed}))
		require.False(t, passes(t, engine), "what WaitFor has waited for is in force")
		before, err := s.At(t.Context(), open.Revision)
		require.NoError(t, err)
		apply(before.Documents)
	}

	var names []string
	for _, d := range engine.Status().Sources[0].Documents {
		names = append(names, d.Name)
	}
	assert.Equal(t, []string{"other.yaml"}, names, "history and reports are no documents")
}

func TestWaitForSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	s := newStore(t, server)
	slow, _ := lag(t, server, "slow", 0)
	done, waiting := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
		defer cancel()
		done <- s.WaitFor(ctx, 1, func([]etcd.Report) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		})
	}()
	<-waiting
	require.NoError(t, server.Restart())
	slow.limit.Store(1 << 62)
	put(t, server, "a", time.Now().String())
	require.NoError(t, <-done)
}
