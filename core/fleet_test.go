package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// quota is a rule for the whole fleet.
func quota(limit float64, mode fleet.Mode) flow.Rule {
	return flow.Rule{Name: "quota", Resource: "r", Limit: limit, Scope: rule.ScopeFleet, Fleet: rule.Fleet{Mode: mode}}
}

// fleetOf returns engines that share a store, each with the rules.
func fleetOf(t *testing.T, n int, backend func() fleet.Backend, loaded ...flow.Rule) []*core.Engine {
	t.Helper()
	engines := make([]*core.Engine, n)
	for i := range engines {
		engines[i] = core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: backend(), Instance: string(rune('a' + i))}})
		require.NoError(t, engines[i].Load(rules.Set{Flow: loaded}))
	}
	return engines
}

func store() func() fleet.Backend {
	shared := fleetmemory.New(clock.System())
	return func() fleet.Backend { return shared }
}

func closeAll(engines []*core.Engine) {
	for _, e := range engines {
		e.Close()
	}
}

// Engines that share a store pass together what the limit allows, whatever the mode.
func TestEnginesPassTheLimitTogether(t *testing.T) {
	waiting := quota(200, fleet.ModeLease)
	waiting.Algorithm, waiting.Burst, waiting.MaxWait = flow.TokenBucket, 20, 100*time.Millisecond
	spaced := quota(200, fleet.ModeAsk)
	spaced.Algorithm, spaced.MaxWait = flow.Throttle, 100*time.Millisecond
	for name, r := range map[string]flow.Rule{
		"lease": quota(200, fleet.ModeLease), "ask": quota(200, fleet.ModeAsk), "share": quota(200, fleet.ModeShare),
		"waiting": waiting, "asked throttle": spaced,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines := fleetOf(t, 4, store(), r)
				defer closeAll(engines)
				var passed atomic.Int64
				var running sync.WaitGroup
				count := func(d time.Duration) int64 {
					before := passed.Load()
					for _, e := range engines {
						for range 4 {
							running.Go(func() {
								for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(9 * time.Millisecond) {
									if guard, err := e.Entry(context.Background(), "r"); err == nil {
										passed.Add(1)
										guard.Exit()
									}
								}
							})
						}
					}
					running.Wait()
					return passed.Load() - before
				}
				count(4 * time.Second)
				total := count(5 * time.Second)
				assert.LessOrEqual(t, total, int64(1080))
				assert.GreaterOrEqual(t, total, int64(900))
			})
		})
	}
}

func TestFleetRuleWithoutABackendLimitsTheInstanceAndSaysSo(t *testing.T) {
	var log bytes.Buffer
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer e.Close()
	assert.Nil(t, e.Fleet())
	assert.Nil(t, e.Status().Fleet)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{quota(5, fleet.ModeAsk)}}))
	assert.Equal(t, 5, enter(e, "r", 8))
	status := e.Status().Fleet
	require.NotNil(t, status)
	require.ErrorContains(t, status.Err, "has no backend for its fleet")
	assert.Equal(t, 1, status.Rules)
	const message = "rules are for the whole fleet"
	assert.Equal(t, 1, strings.Count(log.String(), message))
	assert.Contains(t, log.String(), "level=ERROR")

	own := quota(5, "")
	own.Name, own.Scope, own.Fleet = "own", "", rule.Fleet{}
	require.NoError(t, e.LoadAs("other", rules.Set{Flow: []flow.Rule{own}}))
	assert.Equal(t, 1, strings.Count(log.String(), message), "no rule of the fleet has come")
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{quota(9, fleet.ModeAsk)}}))
	assert.Equal(t, 2, strings.Count(log.String(), message), "once for each set")
	require.NoError(t, e.Load(rules.Set{}))
	assert.Nil(t, e.Status().Fleet)
}

func TestEngineRunsItsMemberWhileRulesNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := fleetmemory.New(clock.System())
		engines := fleetOf(t, 2, func() fleet.Backend { return shared })
		known := func() int {
			found, err := engines[0].Fleet().Fleet(t.Context())
			require.NoError(t, err)
			return found.Count
		}
		time.Sleep(3 * time.Second)
		assert.Zero(t, engines[1].Status().Fleet.Instances, "no rule needs the fleet")
		for _, e := range engines {
			require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{quota(100, fleet.ModeLease)}}))
		}
		time.Sleep(3 * time.Second)
		assert.Equal(t, 2, known())
		assert.True(t, engines[0].Status().Fleet.Connected)
		require.NoError(t, engines[1].Load(rules.Set{}))
		time.Sleep(time.Second)
		assert.Equal(t, 1, known(), "it has left")
		require.NoError(t, engines[1].Load(rules.Set{Flow: []flow.Rule{quota(100, fleet.ModeLease)}}))
		time.Sleep(3 * time.Second)
		assert.Equal(t, 2, known(), "it is back")
		closeAll(engines)
		_, err := engines[0].Entry(context.Background(), "r")
		require.ErrorIs(t, err, core.ErrClosed)
	})
}

// hanging is a backend that never answers.
type hanging struct{ fleet.Store }

func (hanging) Announce(ctx context.Context, _ fleet.Instance, _ bool) (fleet.Fleet, error) {
	<-ctx.Done()
	return fleet.Fleet{}, ctx.Err()
}
func (hanging) Leave(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
func (hanging) Exchange(ctx context.Context, _ []fleet.Request, replies []fleet.Reply) {
	<-ctx.Done()
	for i := range replies {
		replies[i].Err = fleet.ErrUnavailable
	}
}

func TestNoCallWaitsLongerThanTheTimeoutForABackendThatHangs(t *testing.T) {
	for _, onOutage := range []fleet.OnOutage{fleet.OutageOpen, fleet.OutageClosed} {
		synctest.Test(t, func(t *testing.T) {
			r := quota(100, fleet.ModeAsk)
			r.Fleet.OnOutage = onOutage
			e := fleetOf(t, 1, func() fleet.Backend { return hanging{} }, r)[0]
			for range 20 {
				start := time.Now()
				guard, err := e.Entry(context.Background(), "r")
				assert.LessOrEqual(t, time.Since(start), exchange.DefaultTimeout)
				assert.Equal(t, onOutage == fleet.OutageOpen, err == nil, onOutage)
				guard.Exit()
			}
			start := time.Now()
			e.Close()
			assert.LessOrEqual(t, time.Since(start), 2*exchange.DefaultTimeout)
		})
	}
}

func TestNoWaitWaitsForTheAnswerButNotForALaterInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quota(5, fleet.ModeAsk)
		r.Algorithm, r.MaxWait = flow.Throttle, time.Second
		e := fleetOf(t, 1, store(), r)[0]
		defer e.Close()
		guard, err := e.Entry(context.Background(), "r", core.NoWait())
		require.NoError(t, err)
		guard.Exit()
		start := time.Now()
		_, err = e.Entry(context.Background(), "r", core.NoWait())
		require.True(t, core.IsRefusal(err), "%v", err)
		assert.LessOrEqual(t, time.Since(start), exchange.DefaultTimeout)
		time.Sleep(20 * time.Millisecond)
		start = time.Now()
		guard, err = e.Entry(context.Background(), "r")
		require.NoError(t, err, "what the call before was granted was given back")
		assert.LessOrEqual(t, time.Since(start), 210*time.Millisecond)
		guard.Exit()
	})
}

func TestCallThatGivesUpLeavesNothingTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quota(10, fleet.ModeAsk)
		r.Algorithm, r.MaxWait = flow.Throttle, 10*time.Second
		e := fleetOf(t, 1, store(), r)[0]
		defer e.Close()
		for range 30 { // all of which would wait for three seconds
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(20*time.Millisecond, cancel)
			if guard, err := e.Entry(ctx, "r"); err == nil {
				guard.Exit()
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
			cancel()
		}
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		guard, err := e.Entry(context.Background(), "r")
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 200*time.Millisecond)
		guard.Exit()
	})
}

func TestEachResourceOfAPatternHasItsLimitInTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := flow.Rule{Name: "own", Match: "own:*", Limit: 3, Window: time.Minute, Algorithm: flow.FixedWindow, Scope: rule.ScopeFleet, Fleet: rule.Fleet{Mode: fleet.ModeAsk}}
		together := own
		together.Name, together.Match, together.Shared = "together", "together:*", true
		engines := fleetOf(t, 2, store(), own, together)
		defer closeAll(engines)
		passed := map[string]int{}
		for range 5 {
			for _, e := range engines {
				for _, resource := range []string{"own:a", "own:b", "together:a", "together:b"} {
					if guard, err := e.Entry(context.Background(), resource); err == nil {
						passed[resource]++
						guard.Exit()
					}
				}
			}
		}
		assert.Equal(t, 3, passed["own:a"])
		assert.Equal(t, 3, passed["own:b"])
		assert.Equal(t, 3, passed["together:a"]+passed["together:b"])
	})
}

func TestForgottenResourcesAreForgottenByTheMember(t *testing.T) {
	c := clock.NewVirtual(begin)
	shared := fleetmemory.New(c)
	e := core.New(core.Config{Clock: c, Logger: quiet, Fleet: fleet.Config{Manual: true}})
	defer e.Close()
	step := func() {
		for _, batch := range sharing.Of(e.Fleet()).Step(c.Now()) {
			require.NoError(t, batch.Send(t.Context(), shared))
			sharing.Of(e.Fleet()).Deliver(c.Now(), batch)
		}
	}
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Name: "each", Match: "*", Limit: 10, Scope: rule.ScopeFleet}}}))
	for _, name := range []string{"a", "b", "c"} {
		guard, err := e.Entry(context.Background(), name)
		require.NoError(t, err)
		guard.Exit()
	}
	step()
	assert.Len(t, e.Fleet().Status(c.Now()).Limits, 4, "one is that of the names beyond the bound")
	for range 200 {
		c.Advance(time.Second)
		step()
		e.Snapshot()
	}
	step()
	assert.Len(t, e.Fleet().Status(c.Now()).Limits, 1)
}

// runFleet gives the member of an engine what it wants of a store, at the present instant.
func runFleet(t testing.TB, e *core.Engine, shared fleet.Backend) {
	for _, batch := range sharing.Of(e.Fleet()).Step(e.Clock().Now()) {
		require.NoError(t, batch.Send(context.Background(), shared))
		sharing.Of(e.Fleet()).Deliver(e.Clock().Now(), batch)
	}
}

func TestNoCallOfAFleetRuleAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := clock.NewVirtual(begin)
	shared := fleetmemory.New(c)
	e := core.New(core.Config{Clock: c, Logger: quiet, Fleet: fleet.Config{Manual: true}})
	defer e.Close()
	rule := func(resource string, limit float64, mode fleet.Mode, change func(*flow.Rule)) flow.Rule {
		r := quota(limit, mode)
		r.Name, r.Resource = resource, resource
		if change != nil {
			change(&r)
		}
		return r
	}
	throttled := func(r *flow.Rule) { r.Algorithm = flow.Throttle }
	patient := func(r *flow.Rule) { r.Algorithm, r.MaxWait = flow.TokenBucket, time.Second }
	shadow := func(r *flow.Rule) { r.Shadow = true }
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{
		rule("lease", 1e9, fleet.ModeLease, nil), rule("closed lease", 0, fleet.ModeLease, nil),
		rule("full lease", 1e-3, fleet.ModeLease, nil),
		rule("window", 1e9, fleet.ModeWindow, nil), rule("closed window", 0, fleet.ModeWindow, nil),
		rule("throttle", 1e9, fleet.ModeLease, throttled), rule("closed throttle", 0, fleet.ModeLease, throttled),
		rule("bucket", 1e9, fleet.ModeLease, patient), rule("shadow", 0, fleet.ModeLease, shadow),
		rule("share", 1e9, fleet.ModeShare, nil), rule("closed share", 0, fleet.ModeShare, nil),
	}}))
	ctx := context.Background()
	for _, r := range []string{
		"lease", "closed lease", "full lease", "window", "closed window", "throttle", "closed throttle", "bucket", "shadow",
		"share", "closed share",
	} {
		for range 200 {
			guard, _ := e.Entry(ctx, r, core.NoWait())
			guard.Exit()
			c.Advance(time.Millisecond)
			runFleet(t, e, shared)
		}
		assert.Zero(t, testing.AllocsPerRun(50, func() {
			c.Advance(10)
			guard, _ := e.Entry(ctx, r, core.NoWait())
			guard.Exit()
		}), r)
	}
}
