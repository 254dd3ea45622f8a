package nacossource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	nacossource "github.com/penstock-go/penstock/datasource/nacos"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

const (
	password      = "correct-horse-battery"
	wrongPassword = "tr0ub4dor-and-3"
)

func TestSourceKeepsThePromisesOfSources(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		NewStore:    func(t *testing.T) sourcetest.Store { return newStore(t) },
		Open:        openSource(password),
		OpenRefused: openSource(wrongPassword),
		Secrets:     []string{password, wrongPassword, "token-of-login"},
		Lacks: map[sourcetest.Feature]string{
			sourcetest.AnyName:        "names in Nacos have letters, digits and . : _ -",
			sourcetest.Slashes:        "names in Nacos have letters, digits and . : _ -",
			sourcetest.EmptyDocuments: "Nacos refuses contents that are empty",
		},
	})
}

func openSource(password string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
	return func(t *testing.T, s sourcetest.Store, given sourcetest.Options) core.Source {
		t.Helper()
		source, err := nacossource.New(s.(*store).network.Address(), group, nacossource.Options{
			Namespace:      namespace,
			Credentials:    func() (string, string, error) { return user, password, nil },
			RequestTimeout: 5 * time.Second, PollInterval: 20 * time.Millisecond,
			MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond, Logger: given.Logger,
		})
		require.NoError(t, err)
		return source
	}
}

// store is a stand-in behind a network that can be cut.
type store struct {
	nacos   *standIn
	network *sourcetest.Proxy
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{nacos: newStandIn(t)}
	s.nacos.password = password
	s.network = sourcetest.NewProxy(t, strings.TrimPrefix(s.nacos.server.URL, "http://"))
	return s
}

func (s *store) Put(name, content string) { s.nacos.put(name, content) }
func (s *store) Delete(name string)       { s.nacos.remove(name) }
func (s *store) Stop()                    { s.network.Cut() }
func (s *store) Start()                   { s.network.Restore() }
func (s *store) CutAfter(bytes int)       { s.network.ResetAfter(bytes) }

// PutHidden implements [sourcetest.Hider].
func (s *store) PutHidden(name, content string) { s.nacos.putHidden(name, content) }

// Replace implements [sourcetest.Replacer]: tokens of the other server are not valid.
func (s *store) Replace() {
	s.nacos.update(func() {
		clear(s.nacos.configs)
		s.nacos.token = "of another server"
	})
}
