//go:build unix

package redissource_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	redissource "github.com/penstock-go/penstock/datasource/redis"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

const (
	password      = "correct-horse-battery"
	wrongPassword = "tr0ub4dor-and-3"
)

var key = redissource.Key("shop")

func TestSourceWithAClientOfItsOwnKeepsThePromisesOfSources(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		NewStore:    func(t *testing.T) sourcetest.Store { return newStore(t) },
		Open:        openSource(password),
		OpenRefused: openSource(wrongPassword),
		Secrets:     []string{password, wrongPassword},
		Documents:   10_000,
	})
}

func TestSourceWithTheCallersClientKeepsThePromisesOfSources(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		NewStore: func(t *testing.T) sourcetest.Store { return newStore(t) },
		Open: func(t *testing.T, s sourcetest.Store, given sourcetest.Options) core.Source {
			t.Helper()
			store := s.(*store)
			config := store.config(password)
			config.DisableRetry = true                                   // the source tries again
			config.AlwaysPipelining, config.PipelineMultiplex = true, -1 // all goroutines of the client start at once
			opts := shortTimeouts(given)
			client := store.newClient(config)
			source, err := redissource.New(client, key, opts)
			require.NoError(t, err)
			return source
		},
		Secrets: []string{password},
		Lacks:   map[sourcetest.Feature]string{sourcetest.Credentials: "they are the caller's"},
	})
}

func shortTimeouts(given sourcetest.Options) redissource.Options {
	return redissource.Options{
		RequestTimeout: 5 * time.Second, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond, Logger: given.Logger,
	}
}

func openSource(password string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
	return func(t *testing.T, s sourcetest.Store, given sourcetest.Options) core.Source {
		t.Helper()
		source, err := redissource.Open(s.(*store).config(password), key, shortTimeouts(given))
		require.NoError(t, err)
		return source
	}
}

// store is a server that asks for a password, behind a network that can be cut.
type store struct {
	t       *testing.T
	server  *redistest.Server
	network *sourcetest.Proxy
	writer  *redissource.Writer
	stopped bool
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, server: redistest.Start(t, redistest.Options{Password: password})}
	s.network = sourcetest.NewProxy(t, s.server.Addr())
	s.writer = newWriter(t, rueidis.ClientOption{InitAddress: []string{s.server.Addr()}, Password: password})
	return s
}

// newWriter returns a writer whose client is closed with the test.
func newWriter(t *testing.T, config rueidis.ClientOption) *redissource.Writer {
	t.Helper()
	config.DisableCache, config.AlwaysPipelining, config.PipelineMultiplex = true, true, -1 // all its goroutines start at once
	client, err := rueidis.NewClient(config)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	writer, err := redissource.NewWriter(client, key)
	require.NoError(t, err)
	return writer
}

func (s *store) config(password string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{s.network.Address()}, Password: password}
}

// newClient returns a client as services have that began while the server could be
// reached.
func (s *store) newClient(config rueidis.ClientOption) rueidis.Client {
	s.t.Helper()
	if s.stopped {
		s.network.Restore()
		defer s.network.Cut()
	}
	var client rueidis.Client
	require.Eventually(s.t, func() bool { // the first connection may be cut
		var err error
		client, err = rueidis.NewClient(config)
		return err == nil
	}, sourcetest.Patience, time.Millisecond)
	s.t.Cleanup(client.Close)
	return client
}

func (s *store) Put(name, content string) {
	if len(content) > redissource.MaxDocumentSize { // which the writer refuses
		s.server.Do("HSET", key, name, content)
		return
	}
	_, err := s.writer.Put(s.t.Context(), name, []byte(content))
	require.NoError(s.t, err)
}

func (s *store) Delete(name string) {
	_, err := s.writer.Delete(s.t.Context(), name)
	require.NoError(s.t, err)
}

func (s *store) Stop()  { s.network.Cut(); s.stopped = true }
func (s *store) Start() { s.network.Restore(); s.stopped = false }

// PutHidden implements [sourcetest.Hider]: the revision stays. The server tells the source
// of the change all the same.
func (s *store) PutHidden(name, content string) { s.server.Do("HSET", key, name, content) }

// Replace implements [sourcetest.Replacer].
func (s *store) Replace() { s.server.Flush() }

// CutAfter implements [sourcetest.Cutter].
func (s *store) CutAfter(bytes int) { s.network.ResetAfter(bytes) }

// Attempts implements [sourcetest.Counter].
func (s *store) Attempts() int { return s.network.Connections() }
