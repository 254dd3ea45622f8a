package etcd

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// moment is a point in the history of a cluster. The zero moment is before any
// history.
type moment struct {
	cluster  uint64
	term     uint64 // of the leader
	revision int64
}

func momentOf(header *pb.ResponseHeader) moment {
	return moment{header.ClusterId, header.RaftTerm, header.Revision}
}

// precedes tells whether a linearizable read can show the cluster at a later
// moment. Mostly it cannot when the cluster was restored from a backup, which
// leaves its number as it was, and never when it was replaced by another one.
func (m moment) precedes(later moment) bool {
	return m == moment{} || m.cluster == later.cluster && m.term <= later.term && m.revision <= later.revision
}
