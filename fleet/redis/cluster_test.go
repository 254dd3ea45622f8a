//go:build unix

package redis

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestSlotIsThatOfTheBraces(t *testing.T) {
	t.Parallel()
	for key, slot := range map[string]uint16{
		"123456789": 0x31c3, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182, "": 0,
	} {
		assert.Equal(t, slot, slotOf(key), "%q", key)
	}
	assert.NotEqual(t, slotOf(""), slotOf("{}foo"), "empty braces mean nothing")
}

// openCluster returns a store that knows which node has what.
func openCluster(t *testing.T, addresses ...string) *Store {
	t.Helper()
	s := open(t, Options{Addresses: addresses})
	require.Eventually(t, func() bool { return s.slots.nodes.Load() != nil }, patience, 10*time.Millisecond)
	return s
}

func TestPartitionsOfAClusterAreItsNodes(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 3)
	s := openCluster(t, nodes[0].Addr())
	require.Equal(t, 3, s.Partitions())
	keys := map[int]int{} // by partition
	for i := range 30 {
		request := take
		request.Terms.Key = fmt.Sprintf("flow/rule-%d", i)
		require.NoError(t, exchange(t, s, request)[0].Err)
		key, number := s.key(&request), s.Partition(request.Terms.Key)
		keys[number]++
		assert.Equal(t, int64(slotOf(key)), nodes[0].Do("CLUSTER", "KEYSLOT", key))
	}
	for _, node := range nodes { // in the order of their slots
		first := take
		for i := 0; first.Terms.Key == take.Terms.Key; i++ { // the partition of one of its keys
			key := fmt.Sprintf("flow/rule-%d", i)
			if node.Do("CLUSTER", "COUNTKEYSINSLOT", fmt.Sprint(slotOf(s.limitKey(key)))) != int64(0) {
				first.Terms.Key = key
			}
		}
		assert.Len(t, node.Do("KEYS", "*"), keys[s.Partition(first.Terms.Key)])
	}
}

// A slot that moves to a new node is followed at once, and known as the node's within an interval.
func TestPartitionsFollowSlotsAndNodes(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	s := openCluster(t, nodes[0].Addr())
	require.Equal(t, 2, s.Partitions())
	joined := redistest.JoinCluster(t, nodes)
	slot := int(slotOf(s.limitKey(slow.Key)))
	redistest.MoveSlot(slot, nodes[slot*2/slotCount], joined)
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.Len(t, joined.Do("KEYS", "*"), 1)

	before := s.Partition(slow.Key)
	require.Eventually(t, func() bool {
		client, _, _ := s.connection.state()
		s.slots.learn(t.Context(), client, patience)
		return s.Partitions() == 3
	}, patience, 100*time.Millisecond)
	assert.Equal(t, int64(1), used(t, s))
	others := 0
	for i := range 100 { // those of its former node
		if key := fmt.Sprintf("flow/rule-%d", i); int(slotOf(s.limitKey(key)))*2/slotCount == slot*2/slotCount {
			assert.NotEqual(t, s.Partition(slow.Key), s.Partition(key))
			others++
		}
	}
	assert.Positive(t, others)
	assert.Less(t, before, 2)
}

func TestSingleServerIsOnePartition(t *testing.T) { //nolint:paralleltest // it counts allocations
	server := redistest.Any(t)
	s := open(t, Options{Addresses: []string{server.Addr()}})
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.Equal(t, 1, s.Partitions())
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.Partition("flow/a") }))
}

func TestPrimaryOfSentinelsIsOnePartition(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, redistest.Start(t, redistest.Options{}), 0)
	s := open(t, Options{Addresses: []string{sentinel.Addr()}, SentinelMaster: redistest.MasterName})
	require.NoError(t, exchange(t, s, take)[0].Err)
	assert.Equal(t, 1, s.Partitions())
}

// limitsOfACluster is an engine with limits that are spread over the nodes of a cluster.
type limitsOfACluster struct {
	t       *testing.T
	store   *Store
	engine  *core.Engine
	set     rules.Set
	offered int            // calls of each limit
	passed  map[string]int // by resource
}

func newLimitsOfACluster(t *testing.T, nodes []*redistest.Server) *limitsOfACluster {
	l := &limitsOfACluster{t: t, store: openCluster(t, nodes[1].Addr(), nodes[2].Addr())}
	for i := range 12 {
		name := fmt.Sprintf("rule-%d", i)
		l.set.Flow = append(l.set.Flow, flow.Rule{
			Name: name, Resource: name, Limit: 1000, Scope: rule.ScopeFleet, Fleet: rule.Fleet{OnOutage: fleet.OutageClosed},
		})
	}
	// The timeout is long, so that a busy machine is no outage. If answers of all nodes came
	// together, all would take as long.
	l.engine = core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: l.store, Timeout: time.Second},
	})
	t.Cleanup(l.engine.Close)
	require.NoError(t, l.engine.Load(l.set))
	return l
}

func (l *limitsOfACluster) calls(d time.Duration) {
	l.offered, l.passed = 0, map[string]int{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.offered++
		for i := range l.set.Flow {
			if guard, err := l.engine.Entry(l.t.Context(), l.set.Flow[i].Resource); err == nil {
				l.passed[l.set.Flow[i].Resource]++
				guard.Exit()
			}
		}
	}
}

// callsUntilCounted makes calls until the nodes count for every limit.
func (l *limitsOfACluster) callsUntilCounted(nodes []*redistest.Server) {
	require.Eventually(l.t, func() bool {
		l.calls(100 * time.Millisecond)
		counted := 0
		for _, node := range nodes {
			for i := range l.set.Flow {
				slot := slotOf(l.store.limitKey("flow/" + l.set.Flow[i].Name))
				keys, _ := node.Try("CLUSTER", "COUNTKEYSINSLOT", fmt.Sprint(slot))
				if n, _ := keys.(int64); n > 0 {
					counted++
				}
			}
		}
		return counted == len(l.set.Flow)
	}, patience, time.Millisecond)
	l.calls(time.Second)
}

// of returns the limits whose slots a node has, by name.
func (l *limitsOfACluster) of(node int) map[string]bool {
	names := map[string]bool{}
	for i := range l.set.Flow {
		if name := l.set.Flow[i].Name; nodeOf(l.store.limitKey("flow/"+name)) == node {
			names[name] = true
		}
	}
	return names
}

// nodeOf is which of the three nodes of a cluster has a key: the first slot of a node is the quotient, rounded down.
func nodeOf(key string) int { return (int(slotOf(key))*3 + 2) / slotCount }

func all(of []flow.Rule, is func(flow.Rule) bool) bool {
	return !slices.ContainsFunc(of, func(r flow.Rule) bool { return !is(r) })
}

// A node of a cluster that hangs delays no answer of another one: limits that are on the others
// go on as before, and only its own are in an outage.
func TestNodeThatHangsIsAnOutageOfItsLimitsAlone(t *testing.T) {
	t.Parallel()
	for name, hasInstances := range map[string]bool{"a node without the instances": false, "the node with the instances": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := redistest.StartCluster(t, 3)
			l := newLimitsOfACluster(t, nodes)
			l.callsUntilCounted(nodes)
			at := nodeOf(l.store.instancesKey())
			if !hasInstances {
				at = (at + 1) % 3
			}
			hung := l.of(at)
			require.NotEmpty(t, hung)
			nodes[at].Pause()
			defer nodes[at].Resume()
			goesOn := func(r flow.Rule) bool { return hung[r.Name] || l.passed[r.Name] > l.offered*3/4 }
			require.Eventually(t, func() bool { // at once, unless the machine is busy
				l.calls(2 * time.Second) // a request without an answer takes half of that
				return all(l.set.Flow, goesOn)
			}, patience, time.Millisecond)
			isOutage := func(name string) bool {
				for _, limit := range l.engine.Status().Fleet.Limits {
					if limit.Key == "flow/"+name {
						return limit.Outage
					}
				}
				return false
			}
			for name := range hung { // after three requests without an answer
				require.Eventually(t, func() bool { l.calls(100 * time.Millisecond); return isOutage(name) }, patience, time.Millisecond)
			}
			require.Eventually(t, func() bool {
				before := l.engine.Status().Fleet.Outages
				l.calls(time.Second)
				status := l.engine.Status().Fleet
				return status.Connected && status.Outages == before && status.Latency < 500*time.Millisecond &&
					all(l.set.Flow, func(r flow.Rule) bool {
						return hung[r.Name] == (l.passed[r.Name] == 0) && hung[r.Name] == isOutage(r.Name)
					})
			}, patience, time.Millisecond, "those of the node are closed, and no other")
			nodes[at].Resume()
			for name := range hung {
				require.Eventually(t, func() bool { l.calls(100 * time.Millisecond); return !isOutage(name) }, patience, time.Millisecond)
			}
		})
	}
}
