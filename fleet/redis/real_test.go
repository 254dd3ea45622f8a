//go:build unix

package redis

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

// slow is a bucket that does not fill noticeably during a test: what it grants tells how
// often it was asked.
var slow = fleet.Terms{Key: "flow/slow", Limit: 1000, Window: 24 * 365 * time.Hour, Burst: 1000, Buckets: 1}

// take is a request for one token of a bucket.
var take = fleet.Request{Operation: fleet.AskTokenBucket, Terms: slow, Want: 1}

// used returns how many tokens were taken of the slow bucket. It asks again if there is no
// answer, since a connection may just be replaced.
func used(t testing.TB, s *Store) int64 {
	t.Helper()
	ask := take
	ask.Want = 0
	var reply fleet.Reply
	require.Eventually(t, func() bool {
		reply = within(t, s, time.Second, ask)[0]
		return reply.Err == nil
	}, patience, 10*time.Millisecond)
	return reply.Limit - reply.Remaining
}

// recovers waits until a request succeeds.
func recovers(t testing.TB, s fleet.Store) {
	t.Helper()
	ask := take
	ask.Want = 0
	require.Eventually(t, func() bool { return within(t, s, time.Second, ask)[0].Err == nil }, patience, 10*time.Millisecond)
}

func TestRealServerGrantsWhatTheModelGrants(t *testing.T) {
	t.Parallel()
	server := redistest.Any(t)
	// The server knows the scripts from here on: those it does not know run after the others.
	first := open(t, Options{Addresses: []string{server.Addr()}})
	for operation := range fleet.AskBalance + 1 {
		require.NoError(t, exchange(t, first, fleet.Request{Operation: operation, Terms: slow})[0].Err)
	}
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		s := open(t, Options{Addresses: []string{server.Addr()}, App: fmt.Sprintf("model-%d-%d", time.Now().UnixNano(), run)})
		defer func() { _ = s.Close() }()
		virtual := clock.NewVirtual(time.Now())
		model := memory.New(virtual)
		small := rapid.Int64Range(0, 30)
		bursts := map[string]float64{"a": 100, "b": 7, strings.Repeat("c", 200): 30}
		keys := slices.Sorted(maps.Keys(bursts))
		for range rapid.IntRange(1, 12).Draw(r, "batches") {
			requests := make([]fleet.Request, rapid.IntRange(1, 8).Draw(r, "requests"))
			for i := range requests {
				key := rapid.SampledFrom(keys).Draw(r, "key")
				requests[i] = fleet.Request{
					Operation: fleet.Operation(rapid.IntRange(0, int(fleet.AskBalance)).Draw(r, "operation")),
					Terms: fleet.Terms{
						Key: key, Limit: 100, Window: 24 * 365 * time.Hour, Burst: bursts[key], Buckets: 1,
					},
					Want: small.Draw(r, "want"), Back: small.Draw(r, "back"), Keep: time.Minute,
				}
				if requests[i].Operation == fleet.LeaseWindow {
					requests[i].Owed = small.Draw(r, "owed") // a bucket forgets what is owed with time
				}
				if requests[i].Operation > fleet.LeaseWindow && rapid.IntRange(0, 3).Draw(r, "returns") == 0 {
					requests[i].Want = -requests[i].Want
				}
			}
			got, want := exchange(t, s, requests...), exchange(t, model, requests...)
			for i := range requests {
				if g, w := got[i], want[i]; g.Err != nil || g.Granted != w.Granted || g.Limit != w.Limit ||
					g.Remaining != w.Remaining || (g.Retry == fleet.Never) != (w.Retry == fleet.Never) {
					r.Fatalf("request %+v:\n got %+v\nwant %+v", requests[i], g, w)
				}
			}
		}
	})
}

func TestKeysAreSmallAndEndByThemselves(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}, App: "shop"})
	terms := fleet.Terms{Key: "flow/partner-quota/partners:call", Limit: 100_000, Window: 10 * time.Second, Burst: 10_000, Buckets: 10}
	for _, operation := range []fleet.Operation{fleet.LeaseBucket, fleet.LeaseWindow, fleet.AskFixedWindow, fleet.AskThrottle, fleet.AskSlidingLog} {
		reply := exchange(t, s, fleet.Request{Operation: operation, Terms: terms, Want: 1234, Keep: time.Minute})[0]
		require.NoError(t, reply.Err)
		require.NotZero(t, reply.Granted)
	}
	// A window of which every bucket was used.
	var rings strings.Builder
	fmt.Fprintf(&rings, "1000000x10:%d:", time.Now().Unix())
	rings.WriteString(strings.TrimSuffix(strings.Repeat("1234,", 10), ","))
	require.NoError(t, exchange(t, s, fleet.Request{Operation: fleet.LeaseWindow, Terms: terms, Seen: rings.String(), Keep: time.Minute})[0].Err)
	_, err := s.Announce(t.Context(), fleet.Instance{ID: "a", Limits: []fleet.Use{{Key: "k", Demand: 1}}}, true)
	require.NoError(t, err)

	keys := server.Do("KEYS", "*").([]any)
	assert.Len(t, keys, 7)
	for _, key := range keys {
		name := key.(string)
		left := server.Do("PTTL", name).(int64)
		assert.Positive(t, left, "%s has no expiry", name)
		assert.LessOrEqual(t, left, int64(80_000), name)
		bytes := server.Do("MEMORY", "USAGE", name).(int64)
		t.Logf("%d bytes: %s", bytes, name)
		if !strings.Contains(name, "instance") && !strings.HasSuffix(name, ":l") {
			assert.LessOrEqual(t, bytes, int64(190), name)
		}
	}
}

func TestLostScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	lease := fleet.Request{Operation: fleet.LeaseBucket, Terms: fleet.Terms{Key: "other", Limit: 1000, Window: 24 * time.Hour, Burst: 100}, Want: 1}
	for range 3 {
		for _, reply := range exchange(t, s, take) {
			require.NoError(t, reply.Err)
		}
		for _, reply := range exchange(t, s, take, lease, take, lease) {
			require.NoError(t, reply.Err)
			assert.Equal(t, int64(1), reply.Granted)
		}
		server.Do("SCRIPT", "FLUSH")
	}
	assert.Equal(t, int64(9), used(t, s), "each request was made once")
	evals := server.Info("commandstats")
	assert.Contains(t, evals, "cmdstat_eval:calls=")
}

func TestRestartedServerIsFoundAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	server.Kill()
	for range 3 {
		reply := within(t, s, 100*time.Millisecond, take)[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	}
	server.Restart()
	recovers(t, s)
	assert.Equal(t, int64(0), used(t, s), "it is empty, and what failed was not made later")
}

func TestServerThatStartsLaterIsFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.Kill()
	s := open(t, Options{Addresses: []string{server.Addr()}})
	reply := within(t, s, 100*time.Millisecond, take)[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	_, err := s.Announce(t.Context(), fleet.Instance{ID: "a"}, false)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	server.Restart()
	recovers(t, s)
}

func TestPausedServerDoesNotHoldUpAndIsAskedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	server.Pause()
	sent := int64(1)
	for range 5 {
		reply := within(t, s, 100*time.Millisecond, take)[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
		sent++
	}
	server.Resume()
	recovers(t, s)
	assert.LessOrEqual(t, used(t, s), sent, "no request is made twice")
}

func TestServerThatIsPausedForLongIsFoundAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	server.Pause()
	sent, until := int64(1), time.Now().Add(3*silence)
	for time.Now().Before(until) { // the connection is given up meanwhile
		reply := within(t, s, 100*time.Millisecond, take)[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
		sent++
	}
	server.Resume()
	recovers(t, s)
	assert.LessOrEqual(t, used(t, s), sent, "no request is made twice")
}

func TestSlowAnswersAreWaitedForWithinTheContextOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.Addr())
	s := open(t, Options{Addresses: []string{proxy.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	proxy.SetDelay(50 * time.Millisecond)
	require.NoError(t, exchange(t, s, take)[0].Err)
	proxy.SetDelay(400 * time.Millisecond)
	direct, late := open(t, Options{Addresses: []string{server.Addr()}}), int64(0)
	for late < 1000 && used(t, direct) < 3 { // on a busy machine the time is over before a request is sent
		late++
		reply := within(t, s, 100*time.Millisecond, take)[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
		require.ErrorIs(t, reply.Err, context.DeadlineExceeded)
	}
	proxy.SetDelay(0)
	recovers(t, s)
	assert.GreaterOrEqual(t, used(t, s), int64(3), "a late one was made")
	assert.LessOrEqual(t, used(t, s), 2+late, "and no one twice")
}

func TestRequestsWithoutAnswersAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.Addr())
	s := open(t, Options{Addresses: []string{proxy.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	proxy.LoseAnswers(true)
	direct, sent := open(t, Options{Addresses: []string{server.Addr()}}), int64(1)
	for sent < 6 || sent < 1000 && used(t, direct) < 2 { // on a busy machine the time is over before a request is sent
		require.ErrorIs(t, within(t, s, 100*time.Millisecond, take)[0].Err, fleet.ErrUnavailable)
		sent++
	}
	proxy.LoseAnswers(false)
	recovers(t, s) // on another connection
	assert.LessOrEqual(t, used(t, s), sent, "each was made once")
}

func TestFullServerSaysSo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	reply := exchange(t, s, take)[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	assert.ErrorContains(t, reply.Err, "memory is full")
	_, err := s.Announce(t.Context(), fleet.Instance{ID: "a"}, true)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	server.Do("CONFIG", "SET", "maxmemory", "0")
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.Equal(t, int64(2), used(t, s))
}

func TestErrorOfOneRequestDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	server.Do("RPUSH", "{ps:test:list}", "somebody else's")
	wrong := take
	wrong.Terms.Key = "list"
	invalid := take
	invalid.Terms.Window = 0
	replies := exchange(t, s, take, wrong, invalid, take)
	require.NoError(t, replies[0].Err)
	assert.ErrorContains(t, replies[1].Err, "somebody else uses the key")
	assert.NotErrorIs(t, replies[1].Err, fleet.ErrUnavailable)
	assert.ErrorContains(t, replies[2].Err, "window is 0s")
	require.NoError(t, replies[3].Err)
	assert.Equal(t, int64(2), used(t, s))
}

func TestScriptsMayNotRun(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.Do("ACL", "SETUSER", "fleet", "on", ">secret-of-fleet", "~{ps:test:*", "+@all", "-eval")
	s := open(t, Options{Addresses: []string{server.Addr()}, User: "fleet", Password: "secret-of-fleet"})
	reply := exchange(t, s, take)[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	assert.ErrorContains(t, reply.Err, "permissions")
	assert.ErrorContains(t, reply.Err, "NOPERM")

	server.Do("ACL", "SETUSER", "fleet", "+eval", "-evalsha")
	assert.ErrorContains(t, exchange(t, s, take)[0].Err, "NOPERM")

	other := open(t, Options{Addresses: []string{server.Addr()}, User: "fleet", Password: "secret-of-fleet", App: "another"})
	server.Do("ACL", "SETUSER", "fleet", "+evalsha")
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.ErrorContains(t, exchange(t, other, take)[0].Err, "NOPERM", "keys of another app")
}

// permissionsOn are those in the documentation of the package, for the version of a server.
func permissionsOn(server *redistest.Server) []string {
	if strings.Contains(server.Info("server"), "redis_version:6.0.") {
		return slices.DeleteFunc(slices.Clone(permissions), func(one string) bool {
			return one == "resetchannels" || strings.HasPrefix(one, "&")
		})
	}
	return permissions
}

// permissions are those in the documentation of the package.
var permissions = strings.Fields("resetkeys ~{ps:test:* resetchannels &ps:test:* -@all +hello +auth +client|setname +ping " +
	"+evalsha +eval +time +get +mget +set +del +pexpire +zadd +zrem +zcard +zscore +zrange +zrangebyscore +zremrangebyscore +cluster|slots +cluster|shards " +
	"+hmget +hset +hgetall +hdel +info +publish +subscribe")

func TestDocumentedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.Do(append([]string{"ACL", "SETUSER", "fleet", "on", ">secret-of-fleet"}, permissionsOn(server)...)...)
	s := open(t, Options{Addresses: []string{server.Addr()}, User: "fleet", Password: "secret-of-fleet"})
	for operation := range fleet.AskBalance + 1 {
		terms := fleet.Terms{Key: fmt.Sprint(operation), Limit: 10, Window: 24 * 365 * time.Hour, Burst: 10, Buckets: 2}
		for _, want := range []int64{8, 8} {
			reply := exchange(t, s, fleet.Request{Operation: operation, Terms: terms, Want: want})[0]
			require.NoError(t, reply.Err, "operation %d", operation)
		}
		if operation > fleet.LeaseWindow {
			require.NoError(t, exchange(t, s, fleet.Request{Operation: operation, Terms: terms, Want: -3})[0].Err)
			require.NoError(t, exchange(t, s, fleet.Request{Operation: operation, Terms: terms, Want: -30})[0].Err)
		}
	}
	claimsAndHears(t, s)
	known, err := s.Announce(t.Context(), fleet.Instance{ID: "a"}, true)
	require.NoError(t, err)
	assert.Equal(t, 1, known.Count)
	require.NoError(t, s.Leave(t.Context(), "a"))
}

func TestReplicaIsRefusedUntilItIsThePrimary(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	replica := redistest.Start(t, redistest.Options{ReplicaOf: server})
	replica.AwaitReplica()
	s := open(t, Options{Addresses: []string{replica.Addr()}})
	reply := exchange(t, s, take)[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	assert.ErrorContains(t, reply.Err, "replica")
	replica.Do("REPLICAOF", "NO", "ONE")
	require.Eventually(t, func() bool { return within(t, s, time.Second, take)[0].Err == nil }, patience, 10*time.Millisecond)
	assert.Equal(t, int64(1), used(t, s))
}

func TestWrongCredentialsAreToldWithoutThePassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Password: "right-password"})
	for name, test := range map[string]struct {
		options Options
		say     string
	}{
		"wrong password": {Options{Password: "hunter2-wrong"}, "does not accept"},
		"wrong user":     {Options{User: "nobody", Password: "hunter2-wrong"}, "does not accept"},
		"no password":    {Options{}, "wants a password"},
	} {
		test.options.Addresses = []string{server.Addr()}
		s := open(t, test.options)
		reply := exchange(t, s, take)[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable, name)
		assert.ErrorContains(t, reply.Err, test.say, name)
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", reply.Err, reply.Err, reply.Err), "hunter2", name)
	}
	s := open(t, Options{Addresses: []string{server.Addr()}, Password: "right-password"})
	require.NoError(t, exchange(t, s, take)[0].Err)
}

func TestPasswordThatIsCorrectedOnTheServerIsAccepted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}, User: "fleet", Password: "a-password"})
	require.ErrorIs(t, exchange(t, s, take)[0].Err, fleet.ErrUnavailable)
	server.Do("ACL", "SETUSER", "fleet", "on", ">a-password", "~*", "+@all")
	recovers(t, s)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{TLS: true, Password: "right-password"})
	options := Options{Addresses: []string{server.Addr()}, Password: "right-password", TLS: server.TLS()}
	require.NoError(t, exchange(t, open(t, options), take)[0].Err)

	options.TLS.RootCAs = redistest.Start(t, redistest.Options{TLS: true}).TLS().RootCAs
	assertNotTrusted(t, open(t, options))
	options.TLS = nil
	require.ErrorIs(t, exchange(t, open(t, options), take)[0].Err, fleet.ErrUnavailable)

	plain := redistest.Start(t, redistest.Options{})
	reply := exchange(t, open(t, Options{Addresses: []string{plain.Addr()}, TLS: server.TLS()}), take)[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
}

func TestSentinelsTellWhoIsThePrimary(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := redistest.Start(t, redistest.Options{TLS: encrypted})
			replica := redistest.Start(t, redistest.Options{ReplicaOf: primary, TLS: encrypted})
			replica.AwaitReplica()
			sentinel := redistest.StartSentinel(t, primary, 1)
			s := open(t, Options{Addresses: []string{sentinel.Addr()}, SentinelMaster: redistest.MasterName, TLS: primary.TLS()})
			require.NoError(t, exchange(t, s, take)[0].Err)
			require.Eventually(t, func() bool {
				known, err := replica.Try("EXISTS", "{ps:test:flow/slow}")
				return err == nil && known == int64(1)
			}, patience, 10*time.Millisecond)
			primary.Kill()
			require.ErrorIs(t, within(t, s, 100*time.Millisecond, take)[0].Err, fleet.ErrUnavailable)
			recovers(t, s)
			replica.AwaitPrimary()
			assert.LessOrEqual(t, used(t, s), int64(2))
			assert.GreaterOrEqual(t, used(t, s), int64(1), "what was replicated is known")
		})
	}
}

// assertNotTrusted looks at what a store says, once a connection takes no longer than it may.
func assertNotTrusted(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := exchange(t, s, take)[0].Err
		return errors.Is(err, fleet.ErrUnavailable) && strings.Contains(err.Error(), "certificate of the server is not trusted")
	}, patience, time.Millisecond)
}

// Sentinels with a certificate that is not trusted tell nothing, and the error says why.
func TestSentinelsThatAreNotTrustedAreNotBelieved(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{TLS: true})
	sentinel := redistest.StartSentinel(t, primary, 0)
	options := Options{Addresses: []string{sentinel.Addr()}, SentinelMaster: redistest.MasterName, TLS: primary.TLS()}
	options.TLS.RootCAs = x509.NewCertPool()
	assertNotTrusted(t, open(t, options))
	options.TLS = nil
	require.ErrorIs(t, exchange(t, open(t, options), take)[0].Err, fleet.ErrUnavailable)
}

func TestClusterHasAPipelineForEachNode(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	s := open(t, Options{Addresses: []string{nodes[0].Addr(), nodes[1].Addr()}})
	requests := make([]fleet.Request, 60)
	for i := range requests {
		requests[i] = take
		requests[i].Terms.Key = fmt.Sprintf("flow/rule-%d", i)
	}
	for range 2 {
		for i, reply := range exchange(t, s, requests...) {
			require.NoError(t, reply.Err, "request %d", i)
			require.Equal(t, int64(1), reply.Granted)
		}
	}
	known, err := s.Announce(t.Context(), fleet.Instance{ID: "a"}, true)
	require.NoError(t, err)
	assert.Equal(t, 1, known.Count)

	// A node that does not answer costs nothing but its own limits.
	nodes[2].Pause()
	require.Eventually(t, func() bool { // within a second, unless the machine is busy
		answered := 0
		for _, reply := range within(t, s, time.Second, requests...) {
			if reply.Err == nil {
				answered++
			} else {
				assert.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
			}
		}
		assert.Less(t, answered, 60)
		return answered > 20
	}, patience, time.Millisecond)
	nodes[2].Resume()
	require.Eventually(t, func() bool {
		for _, reply := range within(t, s, time.Second, requests...) {
			if reply.Err != nil {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
}

func TestMovedSlotsAreFollowed(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	s := open(t, Options{Addresses: []string{nodes[0].Addr()}})
	recovers(t, s)
	slot := int(nodes[0].Do("CLUSTER", "KEYSLOT", "{ps:test:flow/slow}").(int64))
	from, to := nodes[0], nodes[1]
	if slot >= 8192 {
		from, to = to, from
	}
	redistest.MoveSlot(slot, from, to)
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.Equal(t, int64(1), used(t, s))
	assert.Len(t, to.Do("KEYS", "*"), 1)
}

func TestInstancesOfARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	one := open(t, Options{Addresses: []string{server.Addr()}})
	two := open(t, Options{Addresses: []string{server.Addr()}})
	first := fleet.Instance{ID: "one", Limits: []fleet.Use{{Key: "flow/a", Demand: 12.5, Passed: math.Pi}}}
	known, err := one.Announce(t.Context(), first, false)
	require.NoError(t, err)
	assert.Equal(t, fleet.Fleet{Count: 1, IsNew: true}, known)
	known, err = two.Announce(t.Context(), fleet.Instance{ID: "another"}, true)
	require.NoError(t, err)
	assert.Equal(t, fleet.Fleet{Count: 2, IsNew: true, Instances: []fleet.Instance{{ID: "another"}, first}}, known)
	require.NoError(t, one.Leave(t.Context(), "one"))
	known, err = two.Announce(t.Context(), fleet.Instance{ID: "another"}, true)
	require.NoError(t, err)
	assert.Equal(t, fleet.Fleet{Count: 1, Instances: []fleet.Instance{{ID: "another"}}}, known)
	_, err = one.Announce(t.Context(), fleet.Instance{ID: "another", Session: "of its own"}, true)
	require.ErrorIs(t, err, fleet.ErrNameTaken)
	assert.ErrorContains(t, err, `redis: announcing "another": `)
}
