package httpsource_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/core"
	httpsource "github.com/penstock-go/penstock/datasource/http"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token      = "token-c0ffee"
	wrongToken = "token-decaf"
	signature  = "sig-5ec2e7"
)

// quick are options with short pauses.
func quick() httpsource.Options {
	return httpsource.Options{
		Interval: 5 * time.Millisecond, CompareInterval: 100 * time.Millisecond, MinBackoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
}

func TestSourceKeepsThePromisesOfSources(t *testing.T) {
	for name, kind := range map[string]struct{ digests, plain bool }{
		"index":                                 {},
		"index with digests":                    {digests: true},
		"server without ETag and Last-Modified": {plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Run(t, sourcetest.Harness{
				NewStore:    func(t *testing.T) sourcetest.Store { return newStore(t, kind.digests, kind.plain) },
				Open:        openSource(token),
				OpenRefused: openSource(wrongToken),
				Secrets:     []string{token, wrongToken, signature},
			})
		})
	}
}

func openSource(token string) func(*testing.T, sourcetest.Store, sourcetest.Options) core.Source {
	return func(t *testing.T, s sourcetest.Store, _ sourcetest.Options) core.Source {
		t.Helper()
		opts := quick()
		opts.Token = func() (string, error) { return token, nil }
		source, err := httpsource.NewIndex("http://"+s.(*store).network.Address()+"/rules/index.json?sig="+signature, opts)
		require.NoError(t, err)
		return source
	}
}

// store is an HTTP server behind a network that can be cut.
type store struct {
	t       *testing.T
	digests bool // are in the index
	plain   bool // no ETag and Last-Modified
	network *sourcetest.Proxy

	mu        sync.Mutex // guards the fields below
	documents map[string]version
	revision  int
	trusted   map[string]bool // what the source asked for on a condition since it was written
}

type version struct {
	content string
	etag    string
}

func newStore(t *testing.T, digests, plain bool) *store {
	t.Helper()
	s := &store{t: t, digests: digests, plain: plain, documents: map[string]version{}, trusted: map[string]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.network = sourcetest.NewProxy(t, server.Listener.Addr().String())
	return s
}

func (s *store) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	do()
}

func (s *store) Put(name, content string) {
	s.change(func() {
		s.documents[name] = version{content, fmt.Sprintf(`W/"%d"`, s.revision)}
		delete(s.trusted, name)
	})
}

// PutHidden implements [sourcetest.Hider]: the tag stays. Of documents whose digests are in
// the index the tag of the index does.
func (s *store) PutHidden(name, content string) {
	relies := name
	if s.digests {
		relies = "index.json"
	}
	require.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.plain || s.trusted[relies]
	}, sourcetest.Patience, time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[name] = version{content, s.documents[name].etag}
}

func (s *store) Delete(name string) { s.change(func() { delete(s.documents, name) }) }
func (s *store) Stop()              { s.network.Cut() }
func (s *store) Start()             { s.network.Restore() }
func (s *store) CutAfter(bytes int) { s.network.ResetAfter(bytes) }
func (s *store) Attempts() int      { return s.network.Connections() }
func (s *store) Replace() {
	s.change(func() {
		clear(s.documents)
		s.revision = 0
	})
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	name := strings.TrimPrefix(r.URL.Path, "/rules/")
	answer, found := s.documents[name]
	s.trusted[name] = s.trusted[name] || r.Header.Get("If-None-Match") == answer.etag
	if name == "index.json" {
		answer, found = version{s.index(), fmt.Sprintf(`"index-%d"`, s.revision)}, true
		s.trusted[name] = r.Header.Get("If-None-Match") == answer.etag
	}
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case !found:
		http.NotFound(w, r)
	case s.plain:
		_, _ = w.Write([]byte(answer.content))
	default:
		w.Header().Set("ETag", answer.etag)
		w.Header().Set("Content-Type", "application/yaml")
		http.ServeContent(w, r, "", time.Unix(1_800_000_000, 0), strings.NewReader(answer.content))
	}
}

// index returns the index. The caller holds mu.
func (s *store) index() string {
	type document struct {
		Name   string `json:"name"`
		SHA256 string `json:"sha256,omitempty"`
	}
	documents := []document{}
	for name, v := range s.documents {
		d := document{Name: name}
		if s.digests {
			digest := sha256.Sum256([]byte(v.content))
			d.SHA256 = hex.EncodeToString(digest[:])
		}
		documents = append(documents, d)
	}
	slices.SortFunc(documents, func(a, b document) int { return strings.Compare(a.Name, b.Name) })
	data, _ := json.Marshal(map[string]any{"documents": documents})
	return string(data)
}

func TestNameHasNoSecrets(t *testing.T) {
	source, err := httpsource.New("https://user:secret@example.com:8443/shop/rules%20v2.yaml?sig=secret#secret", httpsource.Options{})
	require.NoError(t, err)
	assert.Equal(t, "https://example.com:8443/shop/rules%20v2.yaml", source.Name())
	source, err = httpsource.New("https://example.com", httpsource.Options{Name: "central"})
	require.NoError(t, err)
	assert.Equal(t, "central", source.Name())
}
