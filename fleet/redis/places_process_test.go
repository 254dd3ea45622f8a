//go:build unix

package redis

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// holderOf is the variable that makes a process of this test an instance that takes all places of the
// server at that address, and keeps them.
const holderOf = "PENSTOCK_TEST_HOLDER_OF"

// held is what such a process says when it has them.
const held = "all places are held"

// TestHolder is no test but such a process.
func TestHolder(t *testing.T) { //nolint:paralleltest // it is alone in its process
	address := os.Getenv(holderOf)
	if address == "" {
		return
	}
	address, resource, _ := strings.Cut(address, "/")
	engine := newEngineOf(t, Options{Addresses: []string{address}}, "holder")
	for taken := 0; taken < poolLimit; {
		if _, err := enter(t, engine, resource); err == nil {
			taken++
		}
	}
	fmt.Println(held)
	time.Sleep(time.Hour) // until it is killed
}

// enter makes a call of the resource, of one account.
func enter(t *testing.T, engine *core.Engine, resource string) (core.Guard, error) {
	t.Helper()
	return engine.Entry(t.Context(), resource, core.String("account", "one"))
}

func newEngineOf(t *testing.T, options Options, instance string) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{
		Instance: instance, Backend: open(t, options),
	}})
	t.Cleanup(engine.Close)
	set := poolRules()
	set.HotParam = []hotparam.Rule{{
		Name: "exports", Resource: "exports", Param: rule.StringsOf("account"), Concurrency: poolLimit, Scope: rule.ScopeFleet,
		Fleet: rule.Fleet{OnOutage: fleet.OutageClosed},
	}}
	require.NoError(t, engine.Load(set))
	return engine
}

// startHolder starts a process that has taken all places of a resource.
func startHolder(t *testing.T, address, resource string) *exec.Cmd {
	t.Helper()
	holder := exec.Command(os.Args[0], "-test.run=^TestHolder$", "-test.v", "-test.timeout=2h")
	holder.Env = append(os.Environ(), holderOf+"="+address+"/"+resource)
	output, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	t.Cleanup(func() {
		_ = holder.Process.Kill() // it may have ended
		_ = holder.Wait()
	})
	for lines := bufio.NewScanner(output); ; {
		require.True(t, lines.Scan(), "the process ended")
		if lines.Text() == held {
			return holder
		}
	}
}

// A process that is killed gives nothing back: its places are free when its lease has ended, .75 s after its
// last claim.
func TestPlacesOfAKilledProcessAreFreeAgain(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"database", "exports"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			holder := startHolder(t, server.Addr(), resource)
			engine := newEngineOf(t, Options{Addresses: []string{server.Addr()}}, "waiting")
			require.NoError(t, holder.Process.Kill())
			killed := time.Now()
			takeAll(t, engine, resource)
			t.Logf("all places were free %v after the end of their holder", time.Since(killed).Round(time.Millisecond))
		})
	}
}

// takeAll takes all places of a resource, and returns the calls.
func takeAll(t *testing.T, engine *core.Engine, resource string) (calls []*core.Guard) {
	t.Helper()
	require.Eventually(t, func() bool {
		if guard, err := enter(t, engine, resource); err == nil {
			calls = append(calls, &guard)
		}
		return len(calls) == poolLimit
	}, patience, time.Millisecond, "not all places are free again")
	return calls
}

// Nobody can tell a process that is frozen from one that has ended: others get its places. When it goes on, its
// calls count again, and nobody gets a place before they have ended.
func TestCallsOfAFrozenProcessCountWhenItGoesOn(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"database", "exports"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			holder := startHolder(t, server.Addr(), resource)
			engine := newEngineOf(t, Options{Addresses: []string{server.Addr()}}, "waiting")
			require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
			calls := takeAll(t, engine, resource)
			require.NoError(t, holder.Process.Signal(syscall.SIGCONT))
			awaitCounted(t, server, resource, 2*poolLimit)
			for i := range calls {
				calls[i].Exit()
			}
			// All places are those of the process that goes on, as soon as this one has heard of it.
			require.Eventually(t, func() bool {
				guard, err := enter(t, engine, resource)
				if err == nil {
					guard.Exit()
				}
				return err != nil
			}, patience, time.Millisecond)
			require.NoError(t, holder.Process.Kill())
			takeAll(t, engine, resource)
		})
	}
}

// awaitCounted waits until a server counts so many places of a resource.
func awaitCounted(t *testing.T, server *redistest.Server, resource string, places int) {
	t.Helper()
	for deadline := time.Now().Add(patience); countedBy(server, resource) != places; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the server does not count %d places", places)
	}
}

// countedBy is how many places of a resource a server counts.
func countedBy(server *redistest.Server, resource string) (places int) {
	keys, _ := server.Do("KEYS", map[string]string{"database": "*:p", "exports": "*:v:*"}[resource]).([]any)
	for _, key := range keys {
		all, _ := server.Do("HGETALL", key.(string)).([]any)
		for i := 0; i+1 < len(all); i += 2 {
			text, _, _ := strings.Cut(all[i+1].(string), " ")
			if held, _ := strconv.Atoi(text); all[i] != "#" {
				places += held
			}
		}
	}
	return places
}

// Each limit is on one node of a cluster; notices reach instances that are connected to any of them.
func TestPlacesOfACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	options := Options{Addresses: []string{nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr()}}
	p := newPoolOf(t, options, options, options)
	p.works()
	require.Eventually(t, func() bool { // a machine that stops processes for longer than a lease has none
		keys := 0
		for _, node := range nodes {
			reply, _ := node.Try("KEYS", "*pool*")
			list, _ := reply.([]any)
			keys += len(list)
		}
		return keys == 1
	}, patience, time.Millisecond, "on one of the nodes")
}

// A replica that is promoted knows the claims up to its lag; instances claim what they hold.
func TestPlacesSurviveAFailoverToAReplica(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{})
	replica := redistest.Start(t, redistest.Options{ReplicaOf: primary})
	replica.AwaitReplica()
	sentinel := redistest.StartSentinel(t, primary, 1)
	options := Options{Addresses: []string{sentinel.Addr()}, SentinelMaster: redistest.MasterName}
	p := newPoolOf(t, options, options, options)
	p.works()
	primary.Kill()
	p.works() // as onOutage says, and with the replica in place of the primary
	replica.AwaitPrimary()
	replica.AwaitInfo("commandstats", "cmdstat_evalsha:calls=") // instances claim
	p.works()
}
