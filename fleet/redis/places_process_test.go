//go:build unix

package redis

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
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
	engine := newEngineOf(t, Options{Addresses: []string{address}}, "holder")
	for taken := 0; taken < poolLimit; {
		if _, err := engine.Entry(t.Context(), "database"); err == nil {
			taken++
		}
	}
	fmt.Println(held)
	time.Sleep(time.Hour) // until it is killed
}

func newEngineOf(t *testing.T, options Options, instance string) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{
		Instance: instance, Backend: open(t, options),
	}})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(poolRules()))
	return engine
}

// startHolder starts a process that has taken all places.
func startHolder(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	holder := exec.Command(os.Args[0], "-test.run=^TestHolder$", "-test.v", "-test.timeout=2h")
	holder.Env = append(os.Environ(), holderOf+"="+address)
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
	server := redistest.Start(t, redistest.Options{})
	holder := startHolder(t, server.Addr())
	engine := newEngineOf(t, Options{Addresses: []string{server.Addr()}}, "waiting")
	require.NoError(t, holder.Process.Kill())
	killed := time.Now()
	for taken := 0; taken < poolLimit; {
		if guard, err := engine.Entry(t.Context(), "database"); err == nil {
			t.Cleanup(guard.Exit)
			taken++
		}
		require.Less(t, time.Since(killed), patience, "only %d places are free again", taken)
	}
	t.Logf("all places were free %v after the end of their holder", time.Since(killed).Round(time.Millisecond))
}

// Each limit is on one node of a cluster; notices reach instances that are connected to any of them.
func TestPlacesOfACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	options := Options{Addresses: []string{nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr()}}
	p := newPoolOf(t, options, options, options)
	p.works()
	keys := 0
	for _, node := range nodes {
		list, _ := node.Do("KEYS", "*pool*").([]any)
		keys += len(list)
	}
	assert.Equal(t, 1, keys, "on one of the nodes")
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
