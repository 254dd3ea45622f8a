package etcdtest_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

// records is a log that is safe to read while it is written.
type records struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// newKeptEngine returns an engine that follows the server's documents, keeps a copy
// of them, and is ready.
func newKeptEngine(t *testing.T, server *etcdtest.Server, path string) (*core.Engine, *records) {
	t.Helper()
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, prefix, shortBackoff())
	require.NoError(t, err)
	log := new(records)
	logger := slog.New(slog.NewTextHandler(log, nil))
	kept, err := lastgood.Keep(source, lastgood.Options{Path: path, App: "shop", SourceTimeout: eventTimeout, Logger: logger})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: logger})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), kept))
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	require.NoError(t, engine.Ready(ctx))
	return engine, log
}

func TestServiceStartsFromItsCopyWhileEtcdIsDown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.copy")
	server := start(t, etcdtest.Options{Dir: t.TempDir()})
	revision := put(t, server, "orders.yaml", closed)
	engine, _ := newKeptEngine(t, server, path)
	before := time.Now()
	engine.Close()
	server.Stop()

	engine, log := newKeptEngine(t, server, path)
	require.False(t, passes(t, engine), "by the rules of the copy")
	status := engine.Status().Sources[0]
	assert.False(t, status.Connected)
	assert.Equal(t, revision, status.Revision)
	assert.Equal(t, revision, status.Documents[0].Revision)
	assert.WithinDuration(t, before, status.CopiedAt.Time(), eventTimeout)
	require.ErrorContains(t, status.Err, "connection refused")
	assert.Contains(t, log.String(), "the source cannot be read, its last good copy is used")

	require.NoError(t, server.Restart())
	require.Eventually(t, func() bool { return engine.Status().Sources[0].Connected }, eventTimeout, time.Millisecond)
	assert.Zero(t, engine.Status().Sources[0].CopiedAt)
	assert.False(t, passes(t, engine))
	remove(t, server, "orders.yaml")
	awaitPasses(t, engine, true)
}
