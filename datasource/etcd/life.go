package etcd

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// askTimes is how often a silent server is asked for a sign of life, and then
// given up on.
const askTimes = 3

// errReplaced ends a watch on a cluster that is not the one that was read, or
// that has gone back since.
var errReplaced = errors.New("the cluster was restored or replaced")

// signsOfLife asks a server that has been silent for some.
type signsOfLife struct {
	*run
	kv     pb.KVClient
	stream pb.Watch_WatchClient
	start  int64 // the revision that the watch starts at
}

// ask asks for a sign of life. Mostly that is a response on the watch itself,
// which comes later. But a server gives none on a watch that starts in the
// future, as every watch does until something is written to the cluster: then a
// read has to do.
func (l signsOfLife) ask(ctx context.Context) (alive bool, err error) {
	// A failed Send is explained by the Recv that follows.
	_ = l.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
		ProgressRequest: &pb.WatchProgressRequest{},
	}})
	first, end := l.documentRange()
	page, err := l.readPage(ctx, l.kv, &pb.RangeRequest{Key: first, RangeEnd: end, CountOnly: true})
	if err != nil {
		return false, nil //nolint:nilerr // the server is silent, which is the caller's to judge
	}
	if page.Header.ClusterId != l.cluster || page.Header.Revision < l.revision {
		return false, errReplaced
	}
	return page.Header.Revision < l.start, nil
}
