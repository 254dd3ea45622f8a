package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// askTimes is how often a silent server is asked for a sign of life, and then
// given up on.
const askTimes = 3

// errSilent ends a watch that nothing is heard on.
var errSilent = errors.New("no sign of life")

// errReplaced ends a read or a watch of a cluster that is not the one that was read, or
// that has gone back since.
var errReplaced = errors.New("the cluster was restored or replaced")

// signsOfLife asks a server that has been silent for some. It belongs to the
// goroutine of the run.
type signsOfLife struct {
	*run
	kv    pb.KVClient
	watch *watchStream

	asked   int             // times without a sign
	asking  bool            // an answer is to come
	answers chan answer     // one for each time
	reading *sync.WaitGroup // for an answer
	known   int64           // revision that the cluster is known to have come to
	failure error           // of the read made last; nil if it was answered
}

// answer is what a read by the side of the watch says.
type answer struct {
	asked  moment // that the run had come to
	header *pb.ResponseHeader
	err    error
}

// ask asks for a sign of life, or returns why it is of no use to go on asking.
// The sign is an answer on the watch itself, from a member that has come as far
// as the cluster, which a read tells. The read is made in the background: a
// member that does not answer it must not hold up what another one sends.
func (l *signsOfLife) ask(ctx context.Context) error {
	if l.asked++; l.asked == askTimes {
		return l.verdict()
	}
	l.watch.probe()
	l.asking = true
	first, end := l.followedRange()
	asked := l.at
	l.reading.Go(func() {
		page, err := l.readPage(ctx, l.kv, &pb.RangeRequest{Key: first, RangeEnd: end, CountOnly: true})
		l.answers <- answer{asked, page.GetHeader(), err}
	})
	return nil
}

// take takes note of an answer.
func (l *signsOfLife) take(a answer) error {
	l.asking, l.failure = false, a.err
	if a.err != nil {
		return nil // silence, which ask judges
	}
	now := momentOf(a.header)
	if !a.asked.precedes(now) {
		return errReplaced
	}
	l.known = max(l.known, now.revision)
	return nil
}

// heard takes note that the watch has come to a revision. A member that has
// fallen behind what the cluster had come to when it was asked before may go on
// sending: it has no news, and that is no sign of life.
func (l *signsOfLife) heard(revision int64) {
	if revision >= l.known {
		l.asked = 0
	}
}

// verdict says why the watch is given up.
func (l *signsOfLife) verdict() error {
	if l.failure != nil {
		return fmt.Errorf("%w: the server has been silent for %v: %w", errSilent, l.opts.WatchTimeout, l.failure)
	}
	return fmt.Errorf("%w: the watch has brought nothing for %v while the cluster is at revision %d: "+
		"its member lags behind or is cut off", errSilent, l.opts.WatchTimeout, l.known)
}
