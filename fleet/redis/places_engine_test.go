//go:build unix

package redis

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/places"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// pool is engines that share places through a server, and callers who want more than there are.
type pool struct {
	t        *testing.T
	underWay atomic.Int64
	most     atomic.Int64
	passed   atomic.Int64
}

const poolLimit = 6

// newPool returns a pool whose engines reach the server at the addresses. Callers end with the test.
func newPool(t *testing.T, addresses ...string) *pool {
	of := make([]Options, len(addresses))
	for i, address := range addresses {
		of[i] = Options{Addresses: []string{address}}
	}
	return newPoolOf(t, of...)
}

// newPoolOf is newPool for engines that reach their servers in other ways.
func newPoolOf(t *testing.T, of ...Options) *pool {
	p := &pool{t: t}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var callers sync.WaitGroup
	for i, options := range of {
		options.App = "test"
		store, err := Connect(options)
		require.NoError(t, err)
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{
			Instance: strconv.Itoa(i), Backend: store,
		}})
		require.NoError(t, engine.Load(poolRules()))
		t.Cleanup(func() {
			cancel()
			callers.Wait()
			engine.Close()
			require.NoError(t, store.Close())
		})
		for range poolLimit {
			callers.Go(func() {
				for ctx.Err() == nil {
					if guard, err := engine.Entry(ctx, "database"); err == nil {
						p.call()
						guard.Exit()
					}
				}
			})
		}
	}
	return p
}

func poolRules() rules.Set {
	return rules.Set{Isolation: []isolation.Rule{{
		Name: "pool", Resource: "database", Limit: poolLimit, MaxWait: time.Second, Scope: rule.ScopeFleet,
	}}}
}

func (p *pool) call() {
	n := p.underWay.Add(1)
	for most := p.most.Load(); n > most && !p.most.CompareAndSwap(most, n); most = p.most.Load() {
	}
	p.passed.Add(1)
	time.Sleep(3 * time.Millisecond)
	p.underWay.Add(-1)
}

// works waits until there is a time in which calls pass, and no more are under way than the limit. On a
// machine that stops processes for longer than a lease there are others.
func (p *pool) works() {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.most.Store(p.underWay.Load())
		before := p.passed.Load()
		time.Sleep(300 * time.Millisecond)
		return p.passed.Load() > before+10 && p.most.Load() <= poolLimit
	}, patience, time.Millisecond)
}

// The places of an instance that does not claim any more, as one that was killed, are free after a lease.
func TestPlacesOfADeadInstanceAreFreeAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := open(t, Options{Addresses: []string{server.Addr()}})
	dead := places.Claim{
		Instance: "dead", Sequence: 1, Limit: poolLimit, Held: poolLimit, InUse: poolLimit, Want: poolLimit, Life: places.FinalLife,
	}
	require.NoError(t, exchange(t, s, claimOf("isolation/pool", dead))[0].Err)
	began := time.Now()
	p := newPool(t, server.Addr(), server.Addr())
	require.Eventually(t, func() bool { return p.passed.Load() > 0 }, patience, time.Millisecond)
	t.Logf("the first call passed %v after the last claim of the dead one", time.Since(began).Round(time.Millisecond))
	p.works()
}

func TestPlacesSurviveARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	p := newPool(t, server.Addr(), server.Addr(), server.Addr())
	p.works()
	for range 2 {
		server.Kill()
		p.works() // as onOutage says
		server.Restart()
		p.works()
	}
	server.Flush()
	p.works()
}

// An instance whose answers get lost goes on with what it has, and is one of the fleet again afterwards.
func TestPlacesOfAnInstanceThatIsCutOff(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.Addr())
	p := newPool(t, server.Addr(), server.Addr(), proxy.Addr())
	p.works()
	proxy.LoseAnswers(true)
	before := p.passed.Load()
	time.Sleep(time.Second)
	require.Eventually(t, func() bool { return p.passed.Load() > before+10 }, patience, time.Millisecond)
	proxy.LoseAnswers(false)
	p.works()
}
