//go:build unix

package redis

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

// The slot of a limit on calls under way moves to another node of the cluster with its keys, while calls
// come: places go on, and are counted by the new node.
func TestPlacesGoOnWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"database", "exports"} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			nodes := redistest.StartCluster(t, 3)
			p := &pool{t: t}
			ctx, cancel := context.WithCancel(context.Background())
			var callers sync.WaitGroup
			t.Cleanup(func() { cancel(); callers.Wait() })
			for i := range 3 {
				engine := newEngineOf(t, Options{Addresses: []string{nodes[0].Addr(), nodes[1].Addr()}}, strconv.Itoa(i))
				for range poolLimit {
					callers.Go(func() {
						for ctx.Err() == nil {
							if guard, err := enter(t, engine, resource); err == nil {
								p.call()
								guard.Exit()
								continue
							}
							time.Sleep(time.Millisecond)
						}
					})
				}
			}
			t.Cleanup(cancel)
			p.works()
			for node, moves := range slotsOf(nodes, resource) {
				for _, slot := range moves {
					to := nodes[(node+1)%len(nodes)]
					passed := p.passed.Load()
					p.most.Store(0)
					redistest.MigrateSlot(slot, nodes[node], to, func() { time.Sleep(100 * time.Millisecond) })
					t.Logf("slot %d: %d calls while it moved, %d at once at most", slot, p.passed.Load()-passed, p.most.Load())
					p.works()
					require.Eventually(t, func() bool { return len(keysOf(to, resource)) > 0 }, patience, time.Millisecond)
					assert.Empty(t, keysOf(nodes[node], resource))
				}
			}
		})
	}
}

// keysOf returns the keys that a node has of a resource, none if it does not answer.
func keysOf(node *redistest.Server, resource string) (keys []string) {
	found, _ := node.Try("KEYS", map[string]string{"database": "*pool*", "exports": "*exports*"}[resource])
	list, _ := found.([]any)
	for _, key := range list {
		keys = append(keys, key.(string))
	}
	return keys
}

// slotsOf returns the slots that have keys of a resource, by the number of their node.
func slotsOf(nodes []*redistest.Server, resource string) map[int][]int {
	slots := map[int][]int{}
	for i, node := range nodes {
		known := map[int]bool{}
		for _, key := range keysOf(node, resource) {
			if slot := int(slotOf(key)); !known[slot] {
				known[slot] = true
				slots[i] = append(slots[i], slot)
			}
		}
	}
	return slots
}
