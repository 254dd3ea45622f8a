package consulsource_test

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	consulsource "github.com/penstock-go/penstock/datasource/consul"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

// logBuffer is a log that is written and read concurrently.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func follow(t *testing.T, address string, opts consulsource.Options) (*sourcetest.Recorder, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	opts.MinBackoff, opts.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	source, err := consulsource.New(address, prefix, opts)
	require.NoError(t, err)
	return sourcetest.Follow(t, source), log
}

func contains(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func TestRevisionsAreThoseOfKeys(t *testing.T) {
	consul := newStandIn(t)
	consul.put("elsewhere", "x")
	consul.put(prefix+"a.yaml", "1") // index 3
	consul.put(prefix+"b.yaml", "1")
	consul.put(prefix+"a.yaml", "2") // index 5
	consul.put(prefix, "")           // folders
	consul.put(prefix+"team/", "")
	r, _ := follow(t, consul.server.URL, consulsource.Options{})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2", "b.yaml": "1"})
	first := r.Changes()[0]
	assert.EqualValues(t, 7, first.Revision)
	assert.EqualValues(t, 5, first.Documents[0].Revision)
	assert.EqualValues(t, 3, first.Documents[0].Created)
}

func TestRequestsWaitForChanges(t *testing.T) {
	consul := newStandIn(t)
	consul.put(prefix+"a.yaml", "1")
	r, _ := follow(t, consul.server.URL, consulsource.Options{Datacenter: "dc1", Namespace: "team", Partition: "part", WatchTimeout: time.Hour / 10})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	require.Eventually(t, func() bool { return len(consul.asked()) == 2 }, sourcetest.Patience, time.Millisecond)
	consul.put(prefix+"a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
	require.Eventually(t, func() bool { return len(consul.asked()) == 3 }, sourcetest.Patience, time.Millisecond)
	for i, want := range []string{"", "2", "3"} {
		query := consul.asked()[i].URL.Query()
		assert.Equal(t, want, query.Get("index"))
		assert.True(t, query.Has("consistent"))
		assert.Equal(t, []string{"dc1", "team", "part"}, []string{query.Get("dc"), query.Get("ns"), query.Get("partition")})
	}
	assert.Equal(t, "6m0s", consul.asked()[1].URL.Query().Get("wait"))
}

// TestIndexThatGoesBackIsAnotherHistory takes documents from a server that was restored
// while the connection lasted, at the index that was read before.
func TestIndexThatGoesBackIsAnotherHistory(t *testing.T) {
	consul := newStandIn(t)
	for range 10 {
		consul.put(prefix+"a.yaml", "1")
	}
	r, log := follow(t, consul.server.URL, consulsource.Options{WatchTimeout: 20 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	consul.replace()
	consul.put(prefix+"b.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"b.yaml": "2"})
	assert.Contains(t, log.String(), "was restored or replaced")
	assert.Empty(t, r.Errors())
}

// TestReplacedClusterWithTheSameIndexIsRead replaces the cluster by one that has reached
// the index that was read, with other documents.
func TestReplacedClusterWithTheSameIndexIsRead(t *testing.T) {
	consul := newStandIn(t)
	network := sourcetest.NewProxy(t, strings.TrimPrefix(consul.server.URL, "http://"))
	consul.put(prefix+"a.yaml", "old")
	r, _ := follow(t, network.Address(), consulsource.Options{WatchTimeout: 10 * time.Minute})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "old"})
	network.Cut()
	r.AwaitDisconnected(t)
	consul.replace()
	consul.put(prefix+"a.yaml", "new")
	network.Restore()
	r.AwaitDocuments(t, map[string]string{"a.yaml": "new"})
}

func TestFilteredResultsAreNotRemovals(t *testing.T) {
	consul := newStandIn(t)
	consul.put(prefix+"a.yaml", "1")
	consul.put(prefix+"b.yaml", "1")
	want := map[string]string{"a.yaml": "1", "b.yaml": "1"}
	r, _ := follow(t, consul.server.URL, consulsource.Options{WatchTimeout: 20 * time.Millisecond})
	r.AwaitDocuments(t, want)
	for _, filter := range []func(string) bool{
		func(string) bool { return false },
		func(key string) bool { return strings.HasSuffix(key, "a.yaml") },
	} {
		consul.update(func() { consul.filter = filter })
		r.AwaitDisconnected(t)
		assert.ErrorContains(t, r.Errors()[len(r.Errors())-1], "the token may not read all keys")
		assert.Equal(t, want, r.Documents())
		consul.update(func() { consul.filter = nil })
		r.AwaitDocuments(t, want)
	}
}

// TestAnswersThatProveNothingChangeNothing has a server, or something at its address, give
// answers from which it cannot be known what Consul holds.
func TestAnswersThatProveNothingChangeNothing(t *testing.T) {
	want := map[string]string{"a.yaml": "1"}
	for name, c := range map[string]struct {
		respond http.HandlerFunc
		says    string
	}{
		"no leader":             {answer(500, nil, "No cluster leader"), "the cluster has no leader"},
		"leader is not known":   {answer(200, index("9", "X-Consul-KnownLeader", "false"), "[]"), "knows no leader"},
		"refused":               {answer(403, nil, "Permission denied: token with AccessorID 'x' lacks"), `key_prefix "read"`},
		"too many requests":     {answer(429, nil, "slow down"), "limit of requests"},
		"404 of a proxy":        {answer(404, nil, "404 page not found"), "is it that of Consul"},
		"200 of a proxy":        {answer(200, nil, "<html>"), "no index"},
		"a redirect":            {answer(302, http.Header{"Location": {"http://127.0.0.1:1/"}}, ""), "status 302"},
		"another format":        {answer(200, index("9"), `{"Key":"x"}`), "not what Consul writes"},
		"text":                  {answer(200, index("9"), `maintenance`), "not what Consul writes"},
		"an answer cut off":     {answer(200, index("9"), `[{"Key":"penstock/shop/a.yaml","Value":"eA=="}`), "no end"},
		"keys of somebody else": {answer(200, index("9"), `[{"Key":"other/a.yaml","Value":"eA=="}]`), "not below the prefix"},
		"empty without a token": {answer(404, index("9", "X-Consul-Default-ACL-Policy", "deny"), ""), "without a token"},
	} {
		t.Run(name, func(t *testing.T) {
			consul := newStandIn(t)
			consul.put(prefix+"a.yaml", "1")
			r, _ := follow(t, consul.server.URL, consulsource.Options{WatchTimeout: 10 * time.Millisecond})
			r.AwaitDocuments(t, want)
			consul.update(func() {
				consul.respond = func(w http.ResponseWriter, r *http.Request) bool { c.respond(w, r); return true }
			})
			r.AwaitError(t, contains(c.says))
			assert.Equal(t, want, r.Documents())
			consul.update(func() { consul.respond = nil })
			r.AwaitDocuments(t, want)
		})
	}
}

func answer(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// index returns the header of an answer of Consul, with more fields.
func index(n string, more ...string) http.Header {
	h := http.Header{}
	h.Set("X-Consul-Index", n)
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

func TestIndexZeroDoesNotMakeRequestsThatNeverWait(t *testing.T) {
	consul := newStandIn(t)
	consul.header = map[string]string{"X-Consul-Index": "0"}
	r, _ := follow(t, consul.server.URL, consulsource.Options{})
	r.AwaitDocuments(t, map[string]string{})
	require.Eventually(t, func() bool { return len(consul.asked()) >= 2 }, sourcetest.Patience, time.Millisecond)
	assert.Equal(t, "1", consul.asked()[1].URL.Query().Get("index"))
}

func TestStaleAnswersAreBoundedAndNeverGoBack(t *testing.T) {
	consul := newStandIn(t)
	consul.put(prefix+"a.yaml", "1")
	consul.put(prefix+"a.yaml", "2") // index 3
	r, log := follow(t, consul.server.URL, consulsource.Options{MaxStale: time.Second, WatchTimeout: 10 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
	assert.True(t, consul.asked()[0].URL.Query().Has("stale"))

	var behind atomic.Int32
	consul.update(func() {
		consul.respond = func(w http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("stale") {
				return false
			}
			behind.Add(1)
			answer(200, index("2", "X-Consul-LastContact", "10"), `[{"Key":"penstock/shop/a.yaml","Value":"MQ=="}]`)(w, r)
			return true
		}
	})
	require.Eventually(t, func() bool { return behind.Load() >= 3 }, sourcetest.Patience, time.Millisecond)
	assert.Equal(t, []string{"2"}, r.History("a.yaml"))
	assert.Empty(t, r.Errors())
	assert.Empty(t, log.String())

	consul.update(func() { consul.respond, consul.header = nil, map[string]string{"X-Consul-LastContact": "1001"} })
	r.AwaitError(t, contains("has not heard from the leader for 1.001s"))
}

func TestTokensAreReadForEachRequest(t *testing.T) {
	consul := newStandIn(t)
	consul.token = "first-token"
	var current atomic.Pointer[string]
	set := func(token string) { current.Store(&token) }
	set("")
	r, log := follow(t, consul.server.URL, consulsource.Options{
		WatchTimeout: 10 * time.Millisecond,
		Token: func() (string, error) {
			if token := *current.Load(); token != "" {
				return token, nil
			}
			return "", errors.New("no such file")
		},
	})
	r.AwaitError(t, contains("getting a token: no such file"))
	set("first-token")
	r.AwaitDocuments(t, map[string]string{})
	consul.update(func() { consul.token = "second-token" })
	r.AwaitError(t, contains("ACL not found"))
	set("second-token")
	consul.put(prefix+"a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})

	consul.update(func() {
		consul.respond = func(w http.ResponseWriter, r *http.Request) bool {
			answer(400, nil, "bad token "+r.Header.Get("X-Consul-Token"))(w, r)
			return true
		}
	})
	r.AwaitError(t, contains("bad token ***"))
	for _, err := range r.Errors() {
		assert.NotContains(t, err.Error(), "second-token")
	}
	assert.NotContains(t, log.String(), "token")
}

func TestSilentServerIsNoticed(t *testing.T) {
	consul := newStandIn(t)
	consul.put(prefix+"a.yaml", "1")
	network := sourcetest.NewProxy(t, strings.TrimPrefix(consul.server.URL, "http://"))
	r, _ := follow(t, network.Address(), consulsource.Options{WatchTimeout: 10 * time.Millisecond, RequestTimeout: 200 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	network.Stall()
	r.AwaitError(t, contains("in time"))
	consul.put(prefix+"a.yaml", "2")
	network.Restore()
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
}

func TestTooManyDocumentsAreNotApplied(t *testing.T) {
	consul := newStandIn(t)
	consul.put(prefix+"a.yaml", "1")
	r, _ := follow(t, consul.server.URL, consulsource.Options{MaxDocuments: 1})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	consul.put(prefix+"b.yaml", "1")
	r.AwaitError(t, contains("Options.MaxDocuments allows, which is 1"))
	assert.Len(t, r.Documents(), 1)
	consul.remove(prefix + "a.yaml")
	r.AwaitDocuments(t, map[string]string{"b.yaml": "1"})
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := consulsource.New("http://user:hunter2@consul", "/", consulsource.Options{
		MaxStale: -1, MaxDocuments: -1, RequestTimeout: -1, WatchTimeout: time.Hour, MinBackoff: 2, MaxBackoff: 1,
		Transport: http.DefaultTransport, TLS: nil,
	})
	for _, text := range []string{
		"has a user", "the prefix is empty", "MaxStale is negative", "MaxDocuments is negative", "RequestTimeout is negative",
		"WatchTimeout is 1h0m0s", "MinBackoff 2ns is longer",
	} {
		require.ErrorContains(t, err, text)
	}
	assert.NotContains(t, err.Error(), "hunter2")
	for address, says := range map[string]string{"ftp://consul": `"ftp"`, "http://": "no host", "http://%zz": "cannot be parsed"} {
		_, err := consulsource.New(address, prefix, consulsource.Options{})
		assert.ErrorContains(t, err, says)
	}
	for bad, says := range map[string]string{"/penstock/shop": "begins with a slash", "penstock//": "empty part", "a\x00": "control characters"} {
		_, err := consulsource.New("consul:8500", bad, consulsource.Options{})
		assert.ErrorContains(t, err, says)
	}
	source, err := consulsource.New("consul:8500", "penstock/shop", consulsource.Options{})
	require.NoError(t, err)
	assert.Equal(t, "consul:"+consulsource.Prefix("shop"), source.Name())
}
