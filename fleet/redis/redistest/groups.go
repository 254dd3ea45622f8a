//go:build unix

package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// MasterName is the name by which sentinels know the server that they watch.
const MasterName = "primary"

// StartSentinel starts a sentinel that watches a server and its replicas, by TLS if they do,
// and waits until it knows them. It promotes a replica within seconds when the server is gone, but not
// because the machine is busy.
func StartSentinel(t testing.TB, primary *Server, replicas int) *Server {
	t.Helper()
	s := Start(t, Options{sentinel: primary, TLS: primary.options.TLS})
	s.await("the sentinel does not know the replicas", func() bool {
		reply, err := s.Try("SENTINEL", "REPLICAS", MasterName)
		known, _ := reply.([]any)
		return err == nil && len(known) == replicas
	})
	return s
}

// AwaitReplica waits until a replica has copied its primary.
func (s *Server) AwaitReplica() {
	s.t.Helper()
	s.AwaitInfo("replication", "master_link_status:up")
}

// AwaitPrimary waits until a replica was promoted.
func (s *Server) AwaitPrimary() {
	s.t.Helper()
	s.AwaitInfo("replication", "role:master")
}

// Info returns a section of what a server tells of itself.
func (s *Server) Info(section string) string {
	s.t.Helper()
	return s.AwaitInfo(section, "")
}

// AwaitInfo waits until a section of what a server tells of itself has a text, and returns the section. A sentinel
// that promotes a server ends the connections that it has: then the server is asked again.
func (s *Server) AwaitInfo(section, text string) (all string) {
	s.t.Helper()
	s.await("the server does not tell of "+text, func() bool {
		reply, err := s.Try("INFO", section)
		all, _ = reply.(string)
		return err == nil && strings.Contains(all, text)
	})
	return all
}

// slots is how many slots a cluster has.
const slots = 16_384

// StartCluster starts a cluster of servers, each of which has a range of slots.
func StartCluster(t testing.TB, nodes int) []*Server {
	t.Helper()
	all := make([]*Server, nodes)
	for i := range all {
		all[i] = Start(t, Options{cluster: true})
		command := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / nodes; slot < (i+1)*slots/nodes; slot++ {
			command = append(command, strconv.Itoa(slot))
		}
		all[i].Do(command...)
		all[i].Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, s := range all[1:] {
		s.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(all[0].port))
	}
	for _, s := range all {
		s.awaitCluster(nodes)
	}
	return all
}

// JoinCluster starts a server without slots in a cluster.
func JoinCluster(t testing.TB, cluster []*Server) *Server {
	t.Helper()
	s := Start(t, Options{cluster: true})
	s.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(cluster[0].port))
	for _, node := range append(slices.Clone(cluster), s) {
		node.awaitCluster(len(cluster) + 1)
	}
	return s
}

// awaitCluster waits until the server knows so many nodes, and that they have all slots.
func (s *Server) awaitCluster(nodes int) {
	s.t.Helper()
	s.await("the cluster does not come up", func() bool {
		reply, err := s.Try("CLUSTER", "INFO")
		info, _ := reply.(string)
		return err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots)) &&
			strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(nodes))
	})
}

// MoveSlot gives a slot, which has no keys, from one server of a cluster to another one.
func MoveSlot(slot int, from, to *Server) {
	from.t.Helper()
	id, _ := to.Do("CLUSTER", "MYID").(string)
	to.Do("CLUSTER", "BUMPEPOCH") // else other servers tell it that the slot is of the one that had it before
	to.Do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
	from.Do("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
}

// MigrateSlot moves a slot with its keys from one server of a cluster to another one, as the tools of Redis
// do, and calls during before the first key moves and after each.
func MigrateSlot(slot int, from, to *Server, during func()) {
	from.t.Helper()
	number := strconv.Itoa(slot)
	source, _ := from.Do("CLUSTER", "MYID").(string)
	target, _ := to.Do("CLUSTER", "MYID").(string)
	to.Do("CLUSTER", "SETSLOT", number, "IMPORTING", source)
	from.Do("CLUSTER", "SETSLOT", number, "MIGRATING", target)
	for {
		during()
		keys, _ := from.Do("CLUSTER", "GETKEYSINSLOT", number, "1").([]any)
		if len(keys) == 0 {
			break
		}
		from.Do("MIGRATE", "127.0.0.1", strconv.Itoa(to.port), keys[0].(string), "0", "5000")
	}
	MoveSlot(slot, from, to)
}

func (s *Server) await(otherwise string, condition func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			s.t.Fatal("redistest: " + otherwise)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
