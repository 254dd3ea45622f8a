package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxProbes is how many heartbeats a silent server may leave unanswered.
const maxProbes = 3

// errSilent ends a watch on which the server no longer answers.
var errSilent = errors.New("no sign of life")

// errReplaced ends a read or a watch when the cluster is not the one that was read
// before, or has been reset to an earlier position.
var errReplaced = errors.New("the cluster was restored or replaced")

// heartbeat probes a server that has been silent, and ends the watch when it does
// not answer. Only the goroutine of the run uses it.
type heartbeat struct {
	*run
	kv    pb.KVClient
	watch *watchStream

	probed          int             // probes since the watch was last heard from
	reading         bool            // a read is under way
	answers         chan answer     // receives the result of each read
	readers         *sync.WaitGroup // counts background reads
	clusterRevision int64           // highest revision that the cluster is known to have reached
	readErr         error           // of the last read; nil if it was answered
}

// answer is the result of the read that goes with a probe.
type answer struct {
	since  position // of the run, when the read was started
	header *pb.ResponseHeader
	err    error
}

// probe sends a probe on the watch and reads the revision of the cluster. The server
// is alive if it answers on the watch and has reached that revision. After too many
// probes without an answer it returns an error instead. The read runs in the
// background, so that a member that does not answer it cannot delay the watch.
func (h *heartbeat) probe(ctx context.Context) error {
	if h.probed++; h.probed == maxProbes {
		return h.timeoutError()
	}
	h.watch.probe()
	h.reading = true
	first, end := h.followedRange()
	since := h.position
	h.readers.Go(func() {
		page, err := h.readPage(ctx, h.kv, &pb.RangeRequest{Key: first, RangeEnd: end, CountOnly: true})
		h.answers <- answer{since, page.GetHeader(), err}
	})
	return nil
}

// handleAnswer handles the result of a read.
func (h *heartbeat) handleAnswer(a answer) error {
	h.reading, h.readErr = false, a.err
	if a.err != nil {
		return nil // counts as unanswered
	}
	now := positionOf(a.header)
	if !a.since.precedes(now) {
		return errReplaced
	}
	h.clusterRevision = max(h.clusterRevision, now.revision)
	return nil
}

// markSeen notes that the watch has reached a revision. A member that has fallen
// behind the cluster may go on sending, but that does not count: its data are old.
func (h *heartbeat) markSeen(revision int64) {
	if revision >= h.clusterRevision {
		h.probed = 0
	}
}

// timeoutError returns the error with which a silent watch ends.
func (h *heartbeat) timeoutError() error {
	if h.readErr != nil {
		return fmt.Errorf("%w: the server has been silent for %v: %w", errSilent, h.opts.WatchTimeout, h.readErr)
	}
	return fmt.Errorf("%w: the watch has brought nothing for %v while the cluster is at revision %d: "+
		"its member lags behind or is cut off", errSilent, h.opts.WatchTimeout, h.clusterRevision)
}
