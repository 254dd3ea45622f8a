package consulsource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	consulsource "github.com/penstock-go/penstock/datasource/consul"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

const (
	token      = "correct-horse-battery"
	wrongToken = "tr0ub4dor-and-3"
	prefix     = "penstock/shop/"
)

func TestSourceKeepsThePromisesOfSources(t *testing.T) {
	sourcetest.Run(t, harness(func(t *testing.T) sourcetest.Store { return newStore(t) }))
}

func harness(newStore func(t *testing.T) sourcetest.Store) sourcetest.Harness {
	return sourcetest.Harness{
		NewStore:    newStore,
		Open:        openSource(token),
		OpenRefused: openSource(wrongToken),
		Secrets:     []string{token, wrongToken},
		Lacks:       map[sourcetest.Feature]string{sourcetest.LongDocuments: "values in Consul have at most 512 KiB"},
	}
}

// addressed is a store that sources reach at an address.
type addressed interface{ address() string }

func openSource(token string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
	return func(t *testing.T, s sourcetest.Store, given sourcetest.Options) core.Source {
		t.Helper()
		source, err := consulsource.New(s.(addressed).address(), prefix, consulsource.Options{
			Token:          func() (string, error) { return token, nil },
			RequestTimeout: 5 * time.Second, WatchTimeout: 200 * time.Millisecond, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
			Logger: given.Logger,
		})
		require.NoError(t, err)
		return source
	}
}

// store is a stand-in behind a network that can be cut.
type store struct {
	consul  *standIn
	network *sourcetest.Proxy
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{consul: newStandIn(t)}
	s.consul.token = token
	s.network = sourcetest.NewProxy(t, strings.TrimPrefix(s.consul.server.URL, "http://"))
	return s
}

func (s *store) address() string          { return s.network.Address() }
func (s *store) Put(name, content string) { s.consul.put(prefix+name, content) }
func (s *store) Delete(name string)       { s.consul.remove(prefix + name) }
func (s *store) Stop()                    { s.network.Cut() }
func (s *store) Start()                   { s.network.Restore() }
func (s *store) Replace()                 { s.consul.replace() }
func (s *store) CutAfter(bytes int)       { s.network.ResetAfter(bytes) }

// PutHidden implements [sourcetest.Hider].
func (s *store) PutHidden(name, content string) { s.consul.putHidden(prefix+name, content) }
