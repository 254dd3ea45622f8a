package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxQueued is how many responses are buffered while documents are read or applied.
// The server buffers the others and then sends many of them in one response.
const maxQueued = 64

// received is a response of the server, or the error of the stream.
type received struct {
	response *pb.WatchResponse
	err      error
}

// receive sends what the server sends to a channel until ctx or the stream ends.
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

// drain returns the first response and those that are in the channel, in order.
// It does not wait for more.
func drain(first received, rest <-chan received) []received {
	all := []received{first}
	for range len(rest) {
		all = append(all, <-rest)
	}
	return all
}
