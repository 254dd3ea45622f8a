//go:build unix

package redissource_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	redissource "github.com/penstock-go/penstock/datasource/redis"
	"github.com/penstock-go/penstock/datasource/sourcetest"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
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

// follow runs a source with a client of its own until the test ends.
func follow(t *testing.T, config rueidis.ClientOption, opts redissource.Options) (*sourcetest.Recorder, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	opts.MinBackoff, opts.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	source, err := redissource.Open(config, key, opts)
	require.NoError(t, err)
	return sourcetest.Follow(t, source), log
}

func at(s *redistest.Server) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{s.Addr()}, TLSConfig: s.TLS()}
}

func put(t *testing.T, w *redissource.Writer, name, text string) (revision int64) {
	t.Helper()
	revision, err := w.Put(t.Context(), name, []byte(text))
	require.NoError(t, err)
	return revision
}

func contains(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func TestDocumentsWrittenByHandArriveAtOnce(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	r, _ := follow(t, at(server), redissource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{})
	server.Do("HSET", key, "a.yaml", "1", "b.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1", "b.yaml": "2"})
	server.Do("HDEL", key, "b.yaml")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	server.Do("RENAME", key, "other")
	r.AwaitError(t, contains("the key is gone"))
	server.Do("RENAME", "other", key)
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
}

func TestChangesArriveByPollingWithoutClientSideCaching(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	for name, config := range map[string]rueidis.ClientOption{
		"the caller disables it":        {DisableCache: true},
		"the protocol has no messages":  {AlwaysRESP2: true},
		"the user has no permission":    {Username: "poll", Password: "secret"},
		"the caller disables pipelines": {DisableCache: true, DisableAutoPipelining: true},
	} {
		t.Run(name, func(t *testing.T) {
			server.Flush()
			server.Do("ACL", "SETUSER", "poll", "on", ">secret", "~*", "+@all", "-client|tracking")
			config.InitAddress = []string{server.Addr()}
			r, log := follow(t, config, redissource.Options{PollInterval: 5 * time.Millisecond})
			r.AwaitDocuments(t, map[string]string{})
			for _, text := range []string{"1", "2", "3"} {
				server.Do("HSET", key, "a.yaml", text)
				r.AwaitDocuments(t, map[string]string{"a.yaml": text})
			}
			assert.Empty(t, r.Errors())
			assert.Equal(t, !config.DisableCache, strings.Contains(log.String(), "does not tell of changes"), log.String())
		})
	}
}

func TestLostHashKeepsTheRulesUntilThereAreDocuments(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	w := newWriter(t, at(server))
	for name, lose := range map[string]func(){
		"flushed": server.Flush,
		"expired": func() { server.Do("PEXPIRE", key, "1") },
		"deleted": func() { server.Do("DEL", key) },
		"restarted empty": func() {
			server.Kill()
			server.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Flush()
			require.Eventually(t, func() bool { _, err := w.Put(t.Context(), "a.yaml", []byte("1")); return err == nil },
				sourcetest.Patience, time.Millisecond)
			r, log := follow(t, at(server), redissource.Options{PollInterval: time.Hour})
			r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
			lose()
			r.AwaitError(t, contains("the key is gone"))
			assert.Equal(t, map[string]string{"a.yaml": "1"}, r.Documents())
			require.Eventually(t, func() bool { _, err := w.Put(t.Context(), "b.yaml", []byte("2")); return err == nil },
				sourcetest.Patience, time.Millisecond)
			r.AwaitDocuments(t, map[string]string{"b.yaml": "2"})
			assert.Contains(t, log.String(), "were replaced by others")
		})
	}
}

func TestLastDocumentRemovedByAWriterIsRemoved(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	w := newWriter(t, at(server))
	put(t, w, "a.yaml", "1")
	r, _ := follow(t, at(server), redissource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	_, err := w.Delete(t.Context(), "a.yaml", "never-there.yaml")
	require.NoError(t, err)
	r.AwaitDocuments(t, map[string]string{})
	assert.Empty(t, r.Errors())
}

// restoreDump replaces the hash by an older one, as a replica has it that takes over and
// lacks the last changes.
func restoreDump(server *redistest.Server, dump string) {
	server.Do("RESTORE", key, "0", dump, "REPLACE")
}

func TestOlderRevisionIsHeldBackAndThenApplied(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	w := newWriter(t, at(server))
	put(t, w, "a.yaml", "old")
	older, _ := server.Do("DUMP", key).(string)
	put(t, w, "a.yaml", "new")

	patient, _ := follow(t, at(server), redissource.Options{AcceptOlderAfter: time.Hour})
	patient.AwaitDocuments(t, map[string]string{"a.yaml": "new"})
	hasty, log := follow(t, at(server), redissource.Options{AcceptOlderAfter: 50 * time.Millisecond})
	hasty.AwaitDocuments(t, map[string]string{"a.yaml": "new"})

	restoreDump(server, older)
	hasty.AwaitDocuments(t, map[string]string{"a.yaml": "old"})
	hasty.AwaitError(t, contains("revision 1, but 2 was read before"))
	assert.Contains(t, log.String(), "has lost changes")
	patient.AwaitError(t, contains("revision 1, but 2 was read before"))
	assert.Equal(t, map[string]string{"a.yaml": "new"}, patient.Documents())

	assert.EqualValues(t, 2, put(t, w, "b.yaml", "later")) // the history goes on from the older revision
	want := map[string]string{"a.yaml": "old", "b.yaml": "later"}
	hasty.AwaitDocuments(t, want)
	patient.AwaitDocuments(t, want)
}

func TestUserWithTheDocumentedPermissionsIsEnough(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	server.Do(strings.Fields("ACL SETUSER shop on >secret resetkeys ~" + key + " resetchannels -@all +hello +auth +ping " +
		"+client|setname +client|tracking +client|caching +multi +exec +pttl +hexists +hlen " +
		"+hgetall +role +cluster|slots +cluster|shards")...)
	server.Do(strings.Fields("ACL SETUSER ci on >secret resetkeys ~" + key + " resetchannels -@all +hello +auth +ping " +
		"+evalsha +eval +hget +hset +hdel +cluster|slots +cluster|shards")...)
	config := at(server)
	config.Username, config.Password = "ci", "secret"
	w := newWriter(t, config)
	config.Username = "shop"
	r, log := follow(t, config, redissource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{})
	put(t, w, "a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	assert.Empty(t, r.Errors())
	assert.Empty(t, log.String())

	server.Do("ACL", "SETUSER", "shop", "-hgetall")
	put(t, w, "a.yaml", "2")
	r.AwaitError(t, contains("lacks a permission"))
	server.Do("ACL", "SETUSER", "shop", "+hgetall")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
}

func TestChangedPasswordIsUsedForTheNextConnection(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	server.Do("ACL", "SETUSER", "shop", "on", ">first", "~*", "+@all")
	var mu sync.Mutex
	password := "first"
	config := at(server)
	config.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		mu.Lock()
		defer mu.Unlock()
		return rueidis.AuthCredentials{Username: "shop", Password: password}, nil
	}
	r, log := follow(t, config, redissource.Options{})
	r.AwaitDocuments(t, map[string]string{})
	server.Do("ACL", "SETUSER", "shop", "resetpass", ">second")
	server.Do("CLIENT", "KILL", "USER", "shop")
	r.AwaitError(t, contains("does not accept the user and the password"))
	mu.Lock()
	password = "second"
	mu.Unlock()
	server.Do("HSET", key, "a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	for _, err := range r.Errors() {
		assert.NotContains(t, err.Error(), "first")
	}
	assert.NotContains(t, log.String(), "first")
}

func TestSilentServerIsNoticed(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	config := at(server)
	config.Dialer.KeepAlive, config.ConnWriteTimeout = 20*time.Millisecond, 200*time.Millisecond
	r, _ := follow(t, config, redissource.Options{PollInterval: time.Hour, RequestTimeout: 200 * time.Millisecond})
	server.Do("HSET", key, "a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	server.Pause()
	r.AwaitDisconnected(t)
	server.Resume()
	server.Do("HSET", key, "a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
}

func TestServerWithTLSIsRead(t *testing.T) {
	server := redistest.Start(t, redistest.Options{TLS: true})
	untrusted := rueidis.ClientOption{InitAddress: []string{server.Addr()}, TLSConfig: server.TLS()}
	untrusted.TLSConfig.RootCAs = nil
	stranger, _ := follow(t, untrusted, redissource.Options{})
	stranger.AwaitError(t, contains("the certificate of the server is not trusted"))
	assert.Empty(t, stranger.Changes())

	r, _ := follow(t, at(server), redissource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{})
	put(t, newWriter(t, at(server)), "a.yaml", "1")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
}

func TestClusterIsRead(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	config := rueidis.ClientOption{InitAddress: []string{nodes[0].Addr(), nodes[1].Addr()}}
	w := newWriter(t, config)
	r, _ := follow(t, config, redissource.Options{PollInterval: time.Hour})
	r.AwaitDocuments(t, map[string]string{})
	_, err := w.Apply(t.Context(), redissource.Edit{Put: map[string][]byte{"a.yaml": []byte("1"), "b.yaml": []byte("2")}})
	require.NoError(t, err)
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1", "b.yaml": "2"})
	_, err = w.Delete(t.Context(), "a.yaml")
	require.NoError(t, err)
	r.AwaitDocuments(t, map[string]string{"b.yaml": "2"})
}

func TestPrimaryThatSentinelsPromoteIsRead(t *testing.T) {
	primary := redistest.Start(t, redistest.Options{})
	replica := redistest.Start(t, redistest.Options{ReplicaOf: primary})
	replica.AwaitReplica()
	put(t, newWriter(t, at(primary)), "a.yaml", "1")
	require.Eventually(t, func() bool {
		copied, err := replica.Try("HGET", key, "a.yaml")
		return err == nil && copied == "1"
	}, sourcetest.Patience, time.Millisecond)
	sentinel := redistest.StartSentinel(t, primary, 1)
	config := at(sentinel)
	config.Sentinel.MasterSet = redistest.MasterName
	r, _ := follow(t, config, redissource.Options{RequestTimeout: 2 * time.Second})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	primary.Kill()
	r.AwaitDisconnected(t)
	replica.AwaitPrimary()
	put(t, newWriter(t, at(replica)), "a.yaml", "2")
	r.AwaitDocuments(t, map[string]string{"a.yaml": "2"})
}

func TestReplicaWithoutAPrimaryIsNotRead(t *testing.T) {
	primary := redistest.Start(t, redistest.Options{})
	put(t, newWriter(t, at(primary)), "a.yaml", "1")
	replica := redistest.Start(t, redistest.Options{ReplicaOf: primary})
	replica.AwaitReplica()
	r, _ := follow(t, at(replica), redissource.Options{PollInterval: 10 * time.Millisecond})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1"})
	primary.Kill()
	r.AwaitError(t, contains("replica without a link to its primary"))
	assert.Equal(t, map[string]string{"a.yaml": "1"}, r.Documents())
}

func TestTooManyDocumentsAreNotApplied(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	w := newWriter(t, at(server))
	put(t, w, "a.yaml", "1")
	put(t, w, "b.yaml", "1")
	r, _ := follow(t, at(server), redissource.Options{MaxDocuments: 2})
	r.AwaitDocuments(t, map[string]string{"a.yaml": "1", "b.yaml": "1"})
	put(t, w, "c.yaml", "1")
	r.AwaitError(t, contains("more than Options.MaxDocuments allows, which is 2"))
	assert.Len(t, r.Documents(), 2)
	_, err := w.Delete(t.Context(), "a.yaml")
	require.NoError(t, err)
	r.AwaitDocuments(t, map[string]string{"b.yaml": "1", "c.yaml": "1"})
}

func TestKeyOfAnotherTypeIsReported(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	server.Do("SET", key, "text")
	r, _ := follow(t, at(server), redissource.Options{})
	r.AwaitError(t, contains("the key is not a hash"))
	server.Do("DEL", key)
	r.AwaitDocuments(t, map[string]string{})
	_, err := newWriter(t, at(server)).Apply(t.Context(), redissource.Edit{
		Put: map[string][]byte{"": nil, "a": nil, "b": make([]byte, redissource.MaxDocumentSize+1)}, Delete: []string{"a", ""},
	})
	for _, text := range []string{"needs a name", `"a" is both`, `"b" has 1048577 bytes`, "to delete has no name"} {
		require.ErrorContains(t, err, text)
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := redissource.Open(rueidis.ClientOption{
		InitAddress: []string{"redis://:hunter2@localhost:6379"}, Username: "u", ReplicaOnly: true,
	}, redissource.Key(""), redissource.Options{
		MaxDocuments: -1, RequestTimeout: -1, PollInterval: -1, AcceptOlderAfter: -1, MinBackoff: 2, MaxBackoff: 1,
	})
	for _, text := range []string{
		"not of the form host:port", "replicas may have old rules", "a user needs a password", "the key is empty", "MaxDocuments is negative",
		"RequestTimeout is negative", "PollInterval is negative", "AcceptOlderAfter is negative", "MinBackoff 2ns is longer",
	} {
		require.ErrorContains(t, err, text)
	}
	assert.NotContains(t, err.Error(), "hunter2")
	_, err = redissource.New(nil, "a\x00b", redissource.Options{})
	require.ErrorContains(t, err, "the client is nil")
	require.ErrorContains(t, err, "control characters")
	_, err = redissource.NewWriter(nil, "")
	require.ErrorContains(t, err, "the client is nil")
}

// TestRunsThatShareAClientBothSeeEveryChange has two sources with the cache of one client.
func TestRunsThatShareAClientBothSeeEveryChange(t *testing.T) {
	server := redistest.Start(t, redistest.Options{})
	client, err := rueidis.NewClient(at(server))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	source, err := redissource.New(client, key, redissource.Options{PollInterval: time.Hour})
	require.NoError(t, err)
	first, second := sourcetest.Follow(t, source), sourcetest.Follow(t, source)
	for _, text := range []string{"1", "2", "3"} {
		server.Do("HSET", key, "a.yaml", text)
		first.AwaitDocuments(t, map[string]string{"a.yaml": text})
		second.AwaitDocuments(t, map[string]string{"a.yaml": text})
	}
}
