package etcdtest_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

const (
	suitePassword = "correct-horse-battery"
	wrongPassword = "tr0ub4dor-and-3"
)

func TestSourceKeepsThePromisesOfSources(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		NewStore:    func(t *testing.T) sourcetest.Store { return newSuiteStore(t) },
		Open:        openSuiteSource(suitePassword),
		OpenRefused: openSuiteSource(wrongPassword),
		Secrets:     []string{suitePassword, wrongPassword},
		Documents:   5000,
	})
}

func openSuiteSource(password string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
	return func(t *testing.T, store sourcetest.Store, given sourcetest.Options) core.Source {
		t.Helper()
		opts := shortTimeouts()
		opts.Logger, opts.CompareInterval = given.Logger, 2*time.Second
		source, err := etcd.Open(clientv3.Config{
			Endpoints: []string{store.(*suiteStore).network.endpoint()}, Username: "root", Password: password,
			DialTimeout: opts.RequestTimeout, DialOptions: []grpc.DialOption{onResponse(store.(*suiteStore).hide)},
		}, prefix, opts)
		require.NoError(t, err)
		return source
	}
}

// suiteStore is a server that asks for passwords, behind a network that can be cut.
type suiteStore struct {
	t       *testing.T
	server  *etcdtest.Server
	network *proxy
	client  *clientv3.Client // of the user root
	hidden  atomic.Int64     // revision whose events the source does not get
}

func newSuiteStore(t *testing.T) *suiteStore {
	t.Helper()
	s := &suiteStore{t: t}
	s.server = start(t, etcdtest.Options{Configure: func(c *embed.Config) { c.BcryptCost = 4 }}) // the least
	s.network = newProxy(t, s.server)
	s.secure()
	return s
}

// secure demands passwords from now on.
func (s *suiteStore) secure() {
	client := s.server.Client()
	_, err := client.UserAdd(s.t.Context(), "root", suitePassword)
	require.NoError(s.t, err)
	_, err = client.UserGrantRole(s.t.Context(), "root", "root")
	require.NoError(s.t, err)
	_, err = client.AuthEnable(s.t.Context())
	require.NoError(s.t, err)
	s.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{s.server.Endpoint()}, Username: "root", Password: suitePassword, DialTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{neverDenied()},
	})
	require.NoError(s.t, err)
	root := s.client
	s.t.Cleanup(func() { _ = root.Close() })
}

func (s *suiteStore) Put(name, content string) {
	_, err := s.client.Put(s.t.Context(), prefix+name, content)
	require.NoError(s.t, err)
}

func (s *suiteStore) Delete(name string) {
	_, err := s.client.Delete(s.t.Context(), prefix+name)
	require.NoError(s.t, err)
}

// PutHidden implements [sourcetest.Hider]: the watch has no event of it.
func (s *suiteStore) PutHidden(name, content string) {
	s.hidden.Store(-1)
	written, err := s.client.Put(s.t.Context(), prefix+name, content)
	require.NoError(s.t, err)
	s.hidden.Store(written.Header.Revision)
}

// hide removes the events of the hidden revision, or those that come while it is written,
// from a response on a watch.
func (s *suiteStore) hide(response *pb.WatchResponse) {
	response.Events = slices.DeleteFunc(response.Events, func(event *mvccpb.Event) bool {
		hidden := s.hidden.Load()
		return hidden == -1 || event.Kv.ModRevision == hidden
	})
}

func (s *suiteStore) Stop()  { s.network.Cut() }
func (s *suiteStore) Start() { s.network.Restore() }

// Replace implements [sourcetest.Replacer]: a stop removes the data.
func (s *suiteStore) Replace() {
	_ = s.client.Close()
	s.server.Stop()
	require.NoError(s.t, s.server.Restart())
	s.secure()
}

// CutAfter implements [sourcetest.Cutter].
func (s *suiteStore) CutAfter(bytes int) { s.network.ResetAfter(bytes) }

// Attempts implements [sourcetest.Counter].
func (s *suiteStore) Attempts() int { return s.network.Connections() }
