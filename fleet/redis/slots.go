package redis

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// slotCount is how many slots the keys of a cluster are divided into.
const slotCount = 16_384

// slotsInterval is how often the nodes are asked which slots they have.
const slotsInterval = 10 * time.Second

// slots knows which node of a cluster has which slots, as of late. That only decides what is
// sent together: the client knows by itself where to send it, also when slots have moved since.
type slots struct {
	nodes atomic.Pointer[nodes] // nil: it is not known, or there is no cluster
}

// nodes are the primaries of a cluster.
type nodes struct {
	count  int
	bySlot [slotCount]uint16 // the number of the node, from 0; also 0 if none has the slot
}

// Partitions implements [fleet.Partitioned]: each primary of a cluster is one.
func (s *Store) Partitions() int {
	if n := s.slots.nodes.Load(); n != nil {
		return n.count
	}
	return 1
}

// Partition implements [fleet.Partitioned].
func (s *Store) Partition(key string) int {
	if n := s.slots.nodes.Load(); n != nil {
		return int(n.bySlot[slotOf(s.limitKey(key))])
	}
	return 0
}

// watch learns which node has which slots, until the connection is closed: at once when there is
// another client, and from time to time.
func (s *slots) watch(c *connection) {
	for c.ctx.Err() == nil {
		client, changed, _ := c.state()
		var again <-chan time.Time
		if client == nil || client.Mode() != rueidis.ClientModeCluster {
			s.nodes.Store(nil)
		} else {
			s.learn(c.ctx, client, c.timeout)
			again = time.After(slotsInterval)
		}
		select {
		case <-changed:
		case <-again:
		case <-c.ctx.Done():
		}
	}
}

// slotOf returns the slot of a key: that of what stands in its first braces.
func slotOf(key string) uint16 {
	if _, tagged, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tagged, "}"); ok && tag != "" {
			key = tag
		}
	}
	return checksum(key) % slotCount
}

// checksum is CRC-16/XMODEM.
func checksum(text string) (sum uint16) {
	const polynomial = 0x1021
	for i := range len(text) {
		sum ^= uint16(text[i]) << 8
		for range 8 {
			carry := sum>>15 != 0
			if sum <<= 1; carry {
				sum ^= polynomial
			}
		}
	}
	return sum
}

// learn asks the nodes of a cluster at once, and believes the first one that answers within a
// time. The others are not interrupted: requests may wait for the same connection.
func (s *slots) learn(ctx context.Context, client rueidis.Client, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	all := client.Nodes()
	answers := make(chan *nodes, len(all))
	var asking sync.WaitGroup
	for _, node := range all {
		asking.Go(func() { answers <- nodesOf(node.Do(ctx, node.B().ClusterSlots().Build())) })
	}
	go func() {
		asking.Wait()
		cancel()
	}()
	for range all {
		if n := <-answers; n != nil {
			s.nodes.Store(n)
			return
		}
	}
}

// nodesOf reads the answer to CLUSTER SLOTS: ranges of slots, each with the nodes that have it,
// the primary first. It returns nil if there is none.
func nodesOf(answer rueidis.RedisResult) *nodes {
	ranges, err := answer.ToArray()
	if err != nil || len(ranges) == 0 {
		return nil
	}
	n, known := &nodes{}, make(map[string]int)
	for i := range ranges {
		fields, err := ranges[i].ToArray()
		if err != nil || len(fields) < 3 {
			return nil
		}
		first, err1 := fields[0].AsInt64()
		last, err2 := fields[1].AsInt64()
		primary, err3 := fields[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(primary) < 2 || first < 0 || last >= slotCount {
			return nil
		}
		host, _ := primary[0].ToString() // none: that of the connection
		port, _ := primary[1].AsInt64()
		address := host + ":" + whole(port)
		if _, ok := known[address]; !ok {
			known[address] = len(known)
		}
		for slot := first; slot <= last; slot++ {
			n.bySlot[slot] = uint16(known[address])
		}
	}
	n.count = len(known)
	return n
}
