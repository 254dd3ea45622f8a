package etcdtest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/fleet"
	etcdfleet "github.com/penstock-go/penstock/fleet/etcd"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// fleetPrefix is below what instances announce themselves.
const fleetPrefix = "/penstock/shop.fleet/"

// openFleet returns a backend with a client of its own.
func openFleet(t *testing.T, config clientv3.Config) *etcdfleet.Backend {
	t.Helper()
	backend, err := etcdfleet.Open(config, prefix)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, backend.Close()) })
	return backend
}

// clientOf returns the configuration of a client of an endpoint.
func clientOf(endpoint string) clientv3.Config { return clientv3.Config{Endpoints: []string{endpoint}} }

// announced returns an announcement.
func announced(id string, uses ...fleet.Use) fleet.Instance {
	return fleet.Instance{ID: id, Limits: uses}
}

// announce announces an instance and returns all that are known.
func announce(t *testing.T, backend *etcdfleet.Backend, self fleet.Instance) fleet.Fleet {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	known, err := backend.Announce(ctx, self, true)
	require.NoError(t, err)
	return known
}

// refused announces an instance until an error comes that is as demanded.
func refused(t *testing.T, backend *etcdfleet.Backend, self fleet.Instance, isWanted func(error) bool) {
	t.Helper()
	var last error
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, last = backend.Announce(ctx, self, true)
		return last != nil && isWanted(last)
	}, eventTimeout, 10*time.Millisecond, "%v", &last)
}

// awaitFleet announces an instance until what is known is as demanded.
func awaitFleet(t *testing.T, backend *etcdfleet.Backend, self fleet.Instance, isWanted func(fleet.Fleet) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		known, err := backend.Announce(ctx, self, true)
		return err == nil && isWanted(known)
	}, eventTimeout, 10*time.Millisecond)
}

// has says that these instances are known, and no other.
func has(ids ...string) func(fleet.Fleet) bool {
	return func(known fleet.Fleet) bool {
		var found []string
		for _, i := range known.Instances {
			found = append(found, i.ID)
		}
		return known.Count == len(ids) && strings.Join(found, " ") == strings.Join(ids, " ")
	}
}

func TestInstancesKnowEachOther(t *testing.T) {
	server := start(t, etcdtest.Options{})
	a, b := openFleet(t, clientOf(server.Endpoint())), openFleet(t, clientOf(server.Endpoint()))
	use := fleet.Use{Key: "flow/pay", Demand: 250, Passed: 123, Reserved: .25}
	long := fleet.Use{Key: "flow/" + strings.Repeat("long", 100), Demand: 1, Passed: 1, Reserved: 1}
	known := announce(t, a, announced("a", use, long))
	assert.Equal(t, fleet.Fleet{Count: 1, IsNew: true, Instances: []fleet.Instance{announced("a", use, long)}}, known)
	assert.False(t, announce(t, a, announced("a", use, long)).IsNew)

	known = announce(t, b, announced("b", long))
	require.True(t, has("a", "b")(known))
	assert.Equal(t, []fleet.Use{use, long}, known.Instances[0].Limits)
	awaitFleet(t, a, announced("a", use, long), has("a", "b"))

	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	known, err := a.Announce(ctx, announced("a", use, long), false)
	require.NoError(t, err)
	assert.Equal(t, fleet.Fleet{Count: 2}, known)

	require.NoError(t, b.Leave(ctx, "b"))
	awaitFleet(t, a, announced("a", use, long), has("a"))
	require.NoError(t, b.Leave(ctx, "b"), "again")
	known = announce(t, b, announced("b"))
	assert.True(t, has("a", "b")(known), "it comes back")
	assert.True(t, known.IsNew)
}

func TestAnnouncementIsWrittenWhenItHasChangedEnough(t *testing.T) {
	server := start(t, etcdtest.Options{})
	backend := openFleet(t, clientOf(server.Endpoint()))
	revision := func() int64 {
		found, err := server.Client().Get(t.Context(), fleetPrefix+"a")
		require.NoError(t, err)
		require.Len(t, found.Kvs, 1)
		return found.Kvs[0].ModRevision
	}
	use := fleet.Use{Key: "flow/pay", Demand: 1000, Passed: 100, Reserved: .25}
	announce(t, backend, announced("a", use))
	first := revision()
	use.Demand, use.Passed, use.Reserved = 1010, 101, .2499
	announce(t, backend, announced("a", use))
	assert.Equal(t, first, revision())
	use.Reserved = .2501
	known := announce(t, backend, announced("a", use))
	assert.Greater(t, revision(), first, "what is reserved is never too little")
	assert.GreaterOrEqual(t, known.Instances[0].Limits[0].Reserved, .2501)
}

func TestInstanceThatEndsWithoutLeavingIsForgotten(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	a := openFleet(t, clientOf(server.Endpoint()))
	killed, err := etcdfleet.Open(clientOf(server.Endpoint()), prefix)
	require.NoError(t, err)
	announce(t, killed, announced("killed"))
	require.True(t, has("a", "killed")(announce(t, a, announced("a"))))
	require.NoError(t, killed.Close())
	awaitFleet(t, a, announced("a"), has("a"))
	_, err = killed.Announce(t.Context(), announced("killed"), true)
	require.ErrorContains(t, err, "has been closed")
}

func TestInstanceThatDoesNotAnnounceItselfIsForgotten(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	a, silent := openFleet(t, clientOf(server.Endpoint())), openFleet(t, clientOf(server.Endpoint()))
	announce(t, silent, announced("silent"))
	awaitFleet(t, a, announced("a"), has("a", "silent"))
	awaitFleet(t, a, announced("a"), has("a"))
	assert.True(t, has("a", "silent")(announce(t, silent, announced("silent"))), "it comes back")
}

func TestTwoInstancesWithOneNameAreAMistake(t *testing.T) {
	server := start(t, etcdtest.Options{})
	a, b := openFleet(t, clientOf(server.Endpoint())), openFleet(t, clientOf(server.Endpoint()))
	announce(t, a, announced("a"))
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	_, err := b.Announce(ctx, announced("a"), true)
	require.ErrorIs(t, err, etcdfleet.ErrNameTaken)
	require.NotErrorIs(t, err, fleet.ErrUnavailable)
	another := announced("a")
	another.Session = "another engine with the same backend"
	_, err = a.Announce(ctx, another, true)
	require.ErrorIs(t, err, fleet.ErrNameTaken)
	require.NoError(t, a.Leave(ctx, "a"))
	announce(t, b, announced("a"))
}

func TestNamesThatCannotBeKeysAreMistakes(t *testing.T) {
	server := start(t, etcdtest.Options{})
	backend := openFleet(t, clientOf(server.Endpoint()))
	for id, says := range map[string]string{"": "is empty", "a/b": "slashes", "\n": "control characters", strings.Repeat("a", 257): "257 bytes"} {
		_, err := backend.Announce(t.Context(), announced(id), true)
		require.ErrorContains(t, err, says)
	}
	_, err := etcdfleet.Open(clientv3.Config{}, prefix)
	require.ErrorContains(t, err, "Endpoints is empty")
	_, err = etcdfleet.Open(clientOf(server.Endpoint()), "")
	require.ErrorContains(t, err, "the prefix is empty")
	_, err = etcdfleet.New(nil, prefix)
	require.ErrorContains(t, err, "no connection")
}

func TestValuesThatAreNoAnnouncementsAreInstancesOfWhichNothingIsKnown(t *testing.T) {
	server := start(t, etcdtest.Options{})
	for id, value := range map[string]string{"b": "", "c": "[]", "d": `{"l":[{"r":"x"}]}`, "e": strings.Repeat(" ", 1<<17)} {
		_, err := server.Client().Put(t.Context(), fleetPrefix+id, value)
		require.NoError(t, err)
	}
	known := announce(t, openFleet(t, clientOf(server.Endpoint())), announced("a"))
	assert.True(t, has("a", "b", "c", "d", "e")(known))
	for _, i := range known.Instances {
		assert.Empty(t, i.Limits)
	}
}

// The lease, the key and the history may be gone, whoever has removed them.
func TestInstanceIsAnnouncedAgain(t *testing.T) {
	server := start(t, etcdtest.Options{})
	a, b := openFleet(t, clientOf(server.Endpoint())), openFleet(t, clientOf(server.Endpoint()))
	announce(t, a, announced("a"))
	require.True(t, has("a", "b")(announce(t, b, announced("b"))))
	for name, breaks := range map[string]func(*testing.T){
		"lease revoked": func(t *testing.T) {
			t.Helper()
			leases, err := server.Client().Leases(t.Context())
			require.NoError(t, err)
			for _, lease := range leases.Leases {
				_, err := server.Client().Revoke(t.Context(), lease.ID)
				require.NoError(t, err)
			}
		},
		"key deleted": func(t *testing.T) {
			t.Helper()
			_, err := server.Client().Delete(t.Context(), fleetPrefix, clientv3.WithPrefix())
			require.NoError(t, err)
		},
		"key overwritten by its instance": func(t *testing.T) {
			t.Helper()
			found, err := server.Client().Get(t.Context(), fleetPrefix+"a")
			require.NoError(t, err)
			for _, pair := range found.Kvs { // as by an announcement whose answer was lost
				_, err = server.Client().Put(t.Context(), fleetPrefix+"a", string(pair.Value), clientv3.WithLease(clientv3.LeaseID(pair.Lease)))
				require.NoError(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			breaks(t)
			awaitFleet(t, a, announced("a"), func(known fleet.Fleet) bool { return known.Count > 0 })
			awaitFleet(t, b, announced("b"), has("a", "b"))
			awaitFleet(t, a, announced("a"), has("a", "b"))
		})
	}
}

// While the network was cut, the history was compacted.
func TestFleetIsReadAgainAfterACompaction(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	a, b := openFleet(t, clientOf(network.endpoint())), openFleet(t, clientOf(server.Endpoint()))
	announce(t, a, announced("a"))
	network.Cut()
	refused(t, a, announced("a"), is(fleet.ErrUnavailable))
	announce(t, b, announced("b"))
	compact(t, server, commit(t, server, clientv3.OpPut("/else", "")))
	network.Restore()
	awaitFleet(t, a, announced("a"), has("a", "b"))
}

func TestFleetAfterARestartOfEtcd(t *testing.T) {
	t.Parallel()
	for name, isEmpty := range map[string]bool{"with its data": false, "empty": true} {
		t.Run(name, func(t *testing.T) {
			opts := etcdtest.Options{}
			if !isEmpty {
				opts.Dir = t.TempDir()
			}
			server := start(t, opts)
			a, b := openFleet(t, clientOf(server.Endpoint())), openFleet(t, clientOf(server.Endpoint()))
			announce(t, a, announced("a"))
			announce(t, b, announced("b"))
			server.Stop()
			refused(t, a, announced("a"), is(fleet.ErrUnavailable))
			require.NoError(t, server.Restart())
			awaitFleet(t, a, announced("a"), func(known fleet.Fleet) bool {
				return known.IsNew || !isEmpty
			})
			awaitFleet(t, b, announced("b"), has("a", "b"))
			awaitFleet(t, a, announced("a"), has("a", "b"))
		})
	}
}

func TestInstanceThatStartsBeforeEtcd(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	server.Stop()
	a := openFleet(t, clientOf(server.Endpoint()))
	refused(t, a, announced("a"), is(fleet.ErrUnavailable))
	require.NoError(t, server.Restart())
	awaitFleet(t, a, announced("a"), has("a"))
}

// A server that hangs accepts connections and answers nothing.
func TestNoCallTakesLongerThanItsContext(t *testing.T) {
	server, _ := secured(t, etcdtest.Options{})
	network := newProxy(t, server)
	config := clientOf(network.endpoint())
	config.Username, config.Password = "root", "root"
	before := openFleet(t, config)
	announce(t, before, announced("a"))
	network.Stall()
	for name, backend := range map[string]*etcdfleet.Backend{"connected": before, "not connected": openFleet(t, config)} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				ended := make(chan error, 1)
				go func() {
					_, err := backend.Announce(ctx, announced("a"), true)
					ended <- err
				}()
				select {
				case err := <-ended:
					require.ErrorIs(t, err, fleet.ErrUnavailable)
				case <-time.After(eventTimeout):
					t.Fatal("the call hangs")
				}
				cancel()
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, before.Leave(ctx, "a"), fleet.ErrUnavailable)
	network.Restore()
}

func TestFleetWithAPassword(t *testing.T) {
	t.Parallel()
	server, root := secured(t, etcdtest.Options{Dir: t.TempDir()})
	const secret = "the-secret-of-the-reader"
	config := clientOf(server.Endpoint())
	config.Username, config.Password = "reader", secret
	backend := openFleet(t, config)
	refused(t, backend, announced("a"), func(err error) bool {
		assert.NotContains(t, err.Error(), secret)
		return is(rpctypes.ErrAuthFailed)(err)
	})
	_, err := root.UserChangePassword(t.Context(), "reader", secret)
	require.NoError(t, err)
	refused(t, backend, announced("a"), func(err error) bool {
		assert.NotContains(t, err.Error(), secret)
		return is(rpctypes.ErrPermissionDenied)(err)
	})
	_, err = root.RoleGrantPermission(t.Context(), "rules", fleetPrefix,
		clientv3.GetPrefixRangeEnd(fleetPrefix), clientv3.PermissionType(clientv3.PermReadWrite))
	require.NoError(t, err)
	_, err = root.UserGrantRole(t.Context(), "reader", "rules")
	require.NoError(t, err)
	awaitFleet(t, backend, announced("a"), has("a"))
	require.NoError(t, server.Restart()) // ends all tokens
	awaitFleet(t, backend, announced("a"), has("a"))
}

func TestFleetWithTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certificate, key := ca.issue(t, "server")
	server := start(t, etcdtest.Options{TLS: transport.TLSInfo{CertFile: certificate, KeyFile: key}})
	config := clientOf(server.Endpoint())
	config.TLS = &tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS12}
	announce(t, openFleet(t, config), announced("a"))

	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	refused(t, openFleet(t, config), announced("b"), says("certificate signed by unknown authority"))
}

func TestFleetOnAClientOfTheCaller(t *testing.T) {
	server := start(t, etcdtest.Options{})
	client := dial(t, server.Endpoint())
	backend, err := etcdfleet.New(client, prefix)
	require.NoError(t, err)
	assert.True(t, has("a")(announce(t, backend, announced("a"))))
	assert.True(t, has("a", "b")(announce(t, backend, announced("b"))), "two instances of one backend")
	require.NoError(t, backend.Close())
	_, err = client.Get(t.Context(), "a")
	assert.NoError(t, err)
}

func TestMembersShareALimitThroughEtcd(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	terms := fleet.Terms{Key: "flow/pay", Limit: 1000, Window: time.Second, Buckets: 10}
	var engines []*core.Engine
	var shares []fleet.Share
	system := clock.System()
	for i := range 3 {
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{
			Backend: openFleet(t, clientOf(server.Endpoint())), Instance: fmt.Sprint(i), Timeout: 2 * time.Second,
		}})
		t.Cleanup(engine.Close)
		// An instance is part of the fleet while it has rules for it.
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{
			Name: "else", Resource: "else", Limit: 10, Scope: rule.ScopeFleet,
			Fleet: rule.Fleet{Mode: fleet.ModeLease, OnOutage: fleet.OutageClosed},
		}}}))
		engines = append(engines, engine)
		shares = append(shares, engine.Fleet().Share(terms, fleet.OutageLast, system.Now()))
	}
	sum := func() (sum float64) {
		for _, s := range shares {
			sum += s.Limit()
		}
		return sum
	}
	// All have the same demand, then one has most of it.
	for _, demand := range [][3]int32{{100, 100, 100}, {200, 2, 2}} {
		require.Eventually(t, func() bool {
			for i, s := range shares {
				passes := min(demand[i], int32(s.Limit()/20))
				s.Count(system.Now(), passes, true)
				s.Count(system.Now(), demand[i]-passes, false)
			}
			assert.LessOrEqual(t, sum(), 1010.1)
			low, high := min(shares[1].Limit(), shares[2].Limit()), shares[0].Limit()
			if demand[0] == demand[1] {
				return low > 333 && high > 333
			}
			return high > 500
		}, eventTimeout, 50*time.Millisecond)
	}
	assert.Eventually(t, func() bool { return engines[0].Fleet().Status(system.Now()).Instances == 3 }, eventTimeout, 10*time.Millisecond)

	// A mode that needs a store says so.
	_, err := engines[0].Entry(t.Context(), "else")
	require.ErrorIs(t, err, core.ErrBlocked)
	limits := engines[0].Fleet().Status(system.Now()).Limits
	at := slices.IndexFunc(limits, func(l fleet.LimitStatus) bool { return l.Key == "flow/else" })
	require.GreaterOrEqual(t, at, 0)
	assert.ErrorIs(t, limits[at].Err, fleet.ErrUnsupported)
}
