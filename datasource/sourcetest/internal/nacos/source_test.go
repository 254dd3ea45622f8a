package nacossource_test

import (
	"bytes"
	"errors"
	"fmt"
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

	nacossource "github.com/penstock-go/penstock/datasource/nacos"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/rules"
)

const (
	configsPath  = "/nacos/v1/cs/configs"
	listenerPath = configsPath + "/listener"
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

func follow(t *testing.T, nacos *standIn, opts nacossource.Options) (*sourcetest.Recorder, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	opts.Namespace, opts.Logger = namespace, slog.New(slog.NewTextHandler(log, nil))
	opts.MinBackoff, opts.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	source, err := nacossource.New(nacos.server.URL, group, opts)
	require.NoError(t, err)
	return sourcetest.Follow(t, source), log
}

func contains(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

// respondWith returns an answer for the requests that match.
func respondWith(matches func(*http.Request) bool, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !matches(r) {
			return false
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

func isSearch(r *http.Request) bool { return r.Form.Get("search") != "" }
func isRead(r *http.Request) bool   { return r.Method == http.MethodGet && !isSearch(r) }

func TestListenersTellOfChangesAndRemovals(t *testing.T) {
	nacos := newStandIn(t)
	nacos.put("a.yaml", "1")
	nacos.put("b.yaml", "größe")
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1", "b.yaml": "größe"})
	nacos.put("a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2", "b.yaml": "größe"})
	nacos.remove("b.yaml")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
	assert.Empty(t, r.Errors())
	assert.Equal(t, "3600500", nacos.asked(listenerPath)[0].Header.Get("Long-Pulling-Timeout"))
	assert.Len(t, nacos.asked(configsPath), 4, "three searches, and a read to confirm the removal")
}

func TestNewDocumentsAreFoundByListing(t *testing.T) {
	nacos := newStandIn(t)
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{})
	nacos.put("a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	nacos.put("b.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1", "b.yaml": "1"})
	assert.Empty(t, r.Errors())
}

func TestContentsAreReadWhereSearchesHaveNone(t *testing.T) {
	nacos := newStandIn(t)
	nacos.noContent = true
	nacos.put("a.yaml", "1")
	nacos.put("long.yaml", strings.Repeat("x", rules.MaxDocumentSize+1))
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	assert.ErrorContains(t, r.AwaitFault(t, "long.yaml"), "has 1048577 bytes")
	nacos.put("a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
}

// TestDocumentThatPagesSkipIsNotRemoved lists a group as it is seen when documents move
// from one page to another while it is read.
func TestDocumentThatPagesSkipIsNotRemoved(t *testing.T) {
	nacos := newStandIn(t)
	nacos.put("a.yaml", "1")
	nacos.put("b.yaml", "1")
	want := map[string]string{"a.yaml": "1", "b.yaml": "1"}
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond})
	r.AwaitDocuments(t, want)
	nacos.update(func() {
		nacos.respond = respondWith(isSearch, 200, `{"totalCount":2,"pagesAvailable":1,"pageItems":[`+
			`{"dataId":"a.yaml","group":"penstock-shop","content":"1"},{"dataId":"c.yaml","group":"penstock-shop","content":"1"}]}`)
	})
	want["c.yaml"] = "1"
	r.AwaitDocuments(t, want)
	for _, change := range r.Changes() {
		assert.Empty(t, change.Removed)
	}
}

func TestManyPagesAreOneChange(t *testing.T) {
	nacos := newStandIn(t)
	want := map[string]string{}
	for i := range 250 {
		want[fmt.Sprintf("document-%d.yaml", i)] = fmt.Sprint(i)
	}
	nacos.update(func() { maps.Copy(nacos.configs, want) })
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, want)
	assert.Len(t, r.Changes(), 1)
	assert.Len(t, nacos.asked(configsPath), 3)
}

func TestAnswersThatProveNothingChangeNothing(t *testing.T) {
	want := map[string]string{"a.yaml": "1"}
	const empty = `{"totalCount":0,"pagesAvailable":0,"pageItems":[]}`
	for name, c := range map[string]struct {
		respond func(http.ResponseWriter, *http.Request) bool
		says    string
	}{
		"maintenance page":      {respondWith(isSearch, 200, "<html>"), "not what Nacos writes"},
		"another format":        {respondWith(isSearch, 200, `{"code":0}`), "there is no count"},
		"count does not match":  {respondWith(isSearch, 200, `{"totalCount":3,"pagesAvailable":1,"pageItems":[]}`), "0 documents of 3"},
		"another group":         {respondWith(isSearch, 200, `{"totalCount":1,"pageItems":[{"dataId":"a","group":"x"}]}`), `group "x"`},
		"server error":          {respondWith(isSearch, 500, "caused: no datasource set"), "status 500: caused: no datasource set"},
		"no such API":           {respondWith(isSearch, 410, "gone"), "does not have the API of Nacos 2"},
		"forbidden":             {respondWith(isSearch, 403, "authorization failed!"), "set Options.Credentials"},
		"empty, reads fail":     {emptyThen(empty, 500, "down"), "status 500: down"},
		"empty, 404 of a proxy": {emptyThen(empty, 404, "404 page not found"), "404 is not from Nacos"},
	} {
		t.Run(name, func(t *testing.T) {
			nacos := newStandIn(t)
			nacos.put("a.yaml", "1")
			r, _ := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond})
			r.AwaitDocuments(t, want)
			nacos.update(func() { nacos.respond = c.respond })
			r.AwaitError(t, contains(c.says))
			assert.Equal(t, want, r.Documents())
			nacos.update(func() { nacos.respond = nil })
			r.AwaitDocuments(t, want)
		})
	}
}

// emptyThen answers searches with nothing, and reads as given.
func emptyThen(empty string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	search, read := respondWith(isSearch, 200, empty), respondWith(isRead, status, body)
	return func(w http.ResponseWriter, r *http.Request) bool { return search(w, r) || read(w, r) }
}

func TestEncryptedDocumentIsFaultyAlone(t *testing.T) {
	nacos := newStandIn(t)
	nacos.encrypted["cipher-a.yaml"] = true
	nacos.put("cipher-a.yaml", "ciphertext")
	nacos.put("b.yaml", "1")
	r, _ := follow(t, nacos, nacossource.Options{})
	r.AwaitDocuments(t, map[string]string{"b.yaml": "1"})
	assert.ErrorContains(t, r.AwaitFault(t, "cipher-a.yaml"), "encrypted")
}

// TestListenerThatAlwaysTellsOfChangesIsNotAskedWithoutPauses has a server whose listener
// knows another version than its searches.
func TestListenerThatAlwaysTellsOfChangesIsNotAskedWithoutPauses(t *testing.T) {
	nacos := newStandIn(t)
	nacos.put("a.yaml", "1")
	var asked []time.Time
	nacos.respond = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != listenerPath {
			return false
		}
		nacos.update(func() { asked = append(asked, time.Now()) })
		_, _ = w.Write([]byte("a.yaml%02penstock-shop%02team-a%01"))
		return true
	}
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	require.Eventually(t, func() bool {
		nacos.mu.Lock()
		defer nacos.mu.Unlock()
		return len(asked) >= 3
	}, sourcetest.Patience, time.Millisecond)
	nacos.mu.Lock()
	defer nacos.mu.Unlock()
	assert.GreaterOrEqual(t, asked[2].Sub(asked[0]), 600*time.Millisecond, "pauses of 200 and 400 ms")
}

func TestTokensAreRenewedBeforeTheyExpireAndWhenRefused(t *testing.T) {
	nacos := newStandIn(t)
	nacos.password, nacos.ttl = password, 1
	nacos.put("a.yaml", "1")
	credentials := func() (string, string, error) { return user, password, nil }
	r, log := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond, Credentials: credentials})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	logins := func() int { return len(nacos.asked("/nacos/v1/auth/users/login")) }
	require.Eventually(t, func() bool { return logins() >= 2 }, sourcetest.Patience, time.Millisecond, "the token is not renewed")
	nacos.update(func() { nacos.ttl = 18_000 })
	nacos.update(func() { nacos.token = "the secret of tokens was changed" })
	nacos.put("a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
	assert.Empty(t, r.Errors())
	assert.Empty(t, log.String())
}

func TestChangedPasswordIsUsedForTheNextLogin(t *testing.T) {
	nacos := newStandIn(t)
	nacos.password = "second"
	var fails atomic.Bool
	fails.Store(true)
	var current atomic.Value
	current.Store("first")
	r, _ := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond, Credentials: func() (string, string, error) {
		if fails.Load() {
			return "", "", errors.New("no such file")
		}
		return user, current.Load().(string), nil
	}})
	r.AwaitError(t, contains("getting the password: no such file"))
	fails.Store(false)
	r.AwaitError(t, contains("the user name or the password is not accepted (status 403: unknown user!)"))
	current.Store("second")
	r.AwaitDocuments(t, map[string]string{})
}

func TestTooManyDocumentsAreNotApplied(t *testing.T) {
	nacos := newStandIn(t)
	nacos.put("a.yaml", "1")
	r, _ := follow(t, nacos, nacossource.Options{MaxDocuments: 1, PollInterval: 10 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	nacos.put("b.yaml", "1")
	r.AwaitError(t, contains("Options.MaxDocuments allows, which is 1"))
	assert.Len(t, r.Documents(), 1)
	nacos.remove("a.yaml")
	r.AwaitDocuments(t, map[string]string{"b.yaml": "1"})
}

func TestDocumentsThatAreNotListenedToAreLogged(t *testing.T) {
	nacos := newStandIn(t)
	want := map[string]string{}
	for i := range 3001 {
		want[fmt.Sprintf("document-%04d.yaml", i)] = "1"
	}
	nacos.update(func() { maps.Copy(nacos.configs, want) })
	r, log := follow(t, nacos, nacossource.Options{PollInterval: 10 * time.Millisecond})
	r.AwaitDocuments(t, want)
	nacos.put("document-3000.yaml", "2")
	want["document-3000.yaml"] = "2"
	r.AwaitDocuments(t, want)
	assert.Equal(t, 1, strings.Count(log.String(), "not all documents in Nacos are listened to"))
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := nacossource.New("http://user:hunter2@nacos", nacossource.Group(""), nacossource.Options{
		Namespace: "a/b", MaxDocuments: -1, RequestTimeout: -1, PollInterval: -1, MinBackoff: 2, MaxBackoff: 1,
	})
	for _, text := range []string{
		"has a user", "the group is empty", `Options.Namespace is "a/b"`, "MaxDocuments is negative", "RequestTimeout is negative",
		"PollInterval is negative", "MinBackoff 2ns is longer",
	} {
		require.ErrorContains(t, err, text)
	}
	assert.NotContains(t, err.Error(), "hunter2")
	_, err = nacossource.New("nacos:8848", "a/b", nacossource.Options{})
	require.ErrorContains(t, err, `the group "a/b" is not a name`)
	source, err := nacossource.New("nacos:8848", nacossource.Group("shop"), nacossource.Options{})
	require.NoError(t, err)
	assert.Equal(t, "nacos:penstock-shop", source.Name())
	source, err = nacossource.New("nacos:8848", nacossource.Group("shop"), nacossource.Options{Namespace: "x"})
	require.NoError(t, err)
	assert.Equal(t, "nacos:x/penstock-shop", source.Name())
}
