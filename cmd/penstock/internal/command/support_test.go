package command_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// eventTimeout is longer than any step of a test takes on a busy machine.
const eventTimeout = 2 * time.Minute

// user runs penstock with the given terminal and environment.
type user struct {
	env      map[string]string
	types    string // on standard input
	terminal bool   // rather than a script
}

// answer is the output and the exit code of a command.
type answer struct {
	out, err string
	code     int
}

func (u user) run(t *testing.T, args ...string) answer {
	t.Helper()
	var notes notes
	out, code := u.runBeside(t, &notes, args...)
	return answer{out, notes.String(), code}
}

// runBeside runs penstock with standard error written to notes, which others may read meanwhile.
func (u user) runBeside(t *testing.T, notes io.Writer, args ...string) (out string, code int) {
	var buffer bytes.Buffer
	code = command.Run(t.Context(), command.Env{
		In: strings.NewReader(u.types), Out: &buffer, Err: notes,
		Getenv:       func(name string) string { return u.env[name] },
		InIsTerminal: u.terminal, OutIsTerminal: u.terminal,
	}, args)
	return buffer.String(), code
}

// notes is a buffer that may be read while it is written to.
type notes struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buffer.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buffer.String()
}

// tree creates a directory with the files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, data := range files {
		path := filepath.Join(directory, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
	return directory
}

var timeOfDay = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// golden compares with a file of testdata, ignoring times and the directory of
// the test. With UPDATE_GOLDEN set it writes the file.
func golden(t *testing.T, name, got, directory string) {
	t.Helper()
	if directory != "" {
		got = strings.ReplaceAll(got, directory, "DIR")
	}
	got = timeOfDay.ReplaceAllString(got, "YYYY-MM-DD HH:MM:SS")
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// startEtcd starts a server for the test, and returns it with a user of it.
func startEtcd(t *testing.T, options etcdtest.Options) (*etcdtest.Server, user) {
	t.Helper()
	server, err := etcdtest.Start(options)
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return server, user{env: map[string]string{"PENSTOCK_ENDPOINTS": server.Endpoint(), "PENSTOCK_APP": "shop"}}
}

// startInstance starts a service that follows the rules and reports. The
// function returned stops it.
func startInstance(t *testing.T, server *etcdtest.Server, name string) (stop func()) {
	t.Helper()
	return startCareful(t, server, name, 0)
}

// startCareful starts an instance with MaxRemoval: it holds back changes that remove more of
// its rules at once.
func startCareful(t *testing.T, server *etcdtest.Server, name string, maxRemoval float64) (stop func()) {
	t.Helper()
	return startCarefulEngine(t, server, name, maxRemoval).Close
}

// startCarefulEngine is startCareful, which follows lists as well. It returns the engine.
func startCarefulEngine(t *testing.T, server *etcdtest.Server, name string, maxRemoval float64) *core.Engine {
	t.Helper()
	silent := slog.New(slog.DiscardHandler)
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, etcd.Prefix("shop"),
		etcd.Options{Instance: name, Logger: silent})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: silent, MaxRemoval: maxRemoval})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), source))
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	lists, err := source.WatchLists(t.Context(), engine.Lists())
	require.NoError(t, err)
	require.NoError(t, lists.Ready(ctx))
	require.NoError(t, engine.Ready(ctx))
	require.Eventually(t, func() bool {
		found, err := server.Client().Get(ctx, "/penstock/shop.instances/"+name)
		return err == nil && len(found.Kvs) == 1
	}, eventTimeout, 10*time.Millisecond)
	return engine
}
