package etcd

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// position is a point in the history of a cluster. The zero value precedes every
// other position.
type position struct {
	cluster  uint64
	term     uint64 // of the leader
	revision int64
}

func positionOf(header *pb.ResponseHeader) position {
	return position{header.ClusterId, header.RaftTerm, header.Revision}
}

// precedes reports whether a cluster that was here can be at the later position
// now. It is false when the cluster was replaced by another one, and in most cases
// when it was restored from a backup, which keeps the cluster's ID.
func (p position) precedes(later position) bool {
	return p == position{} || p.cluster == later.cluster && p.term <= later.term && p.revision <= later.revision
}
