package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxQueued is how many responses wait while documents are read or applied. More
// of them wait at the server, which then sends many in one.
const maxQueued = 64

// received is what came from the server: a response, or why there is none.
type received struct {
	response *pb.WatchResponse
	err      error
}

// receive passes on what the server sends until ctx or the stream ends.
func receive(ctx context.Context, stream pb.Watch_WatchClient, to chan<- received) {
	for {
		response, err := stream.Recv()
		select {
		case to <- received{response, watchError(ctx, err)}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// queued returns what has come, in order: the first and those behind it.
func queued(first received, rest <-chan received) []received {
	all := []received{first}
	for range len(rest) {
		all = append(all, <-rest)
	}
	return all
}
