package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-go/penstock/clock"
)

// errMissed ends a watch that did not deliver a change.
var errMissed = errors.New("the watch has missed a change, all is read again")

// comparison periodically compares the revisions of the documents with those in
// etcd, to find changes that the watch has missed: a proxy may resume its own watch
// at a cluster that was restored meanwhile. Only the goroutine of the run uses it.
type comparison struct {
	*run
	kv    pb.KVClient
	timer clock.Timer

	reading    bool             // a read is under way in the background
	readers    *sync.WaitGroup  // counts background reads
	found      chan revisions   // receives the result of each read
	mismatched map[string]int64 // revisions that the run has of documents that differ from etcd
}

// revisions is the result of a background read.
type revisions struct {
	byDocument map[string]int64 // revision of each document, as in run.versions
	revision   int64            // of etcd, at which they were read
	err        error
}

func newComparison(beat *heartbeat) *comparison {
	c := &comparison{run: beat.run, kv: beat.kv, readers: beat.readers, found: make(chan revisions, 1)}
	c.timer = c.opts.Clock.NewTimer(c.pause())
	return c
}

// pause returns a random time until the next comparison: 3/4 to 5/4 of the interval.
func (c *comparison) pause() time.Duration {
	interval := c.opts.CompareInterval
	return interval - interval/4 + rand.N(interval/2+1) //nolint:gosec // spreads load, guards no secret
}

// grace is how long the watch may take to deliver a change that a read has seen.
func (c *comparison) grace() time.Duration {
	return min(c.opts.RequestTimeout, c.opts.CompareInterval/4)
}

// onTimer handles the timer. It starts a comparison. If the one before found
// differences, it rechecks those instead and returns an error if some remain.
func (c *comparison) onTimer(ctx context.Context) error {
	c.timer.Reset(c.pause())
	if c.mismatched != nil {
		return c.recheck()
	}
	if c.reading {
		return nil
	}
	c.reading = true
	since := c.position
	c.readers.Go(func() { c.found <- c.read(ctx, since) })
	return nil
}

// read reads the revisions of all documents. It fails if the cluster is at a
// position before since.
func (c *comparison) read(ctx context.Context, since position) revisions {
	found := revisions{byDocument: make(map[string]int64)}
	header, err := c.readPages(ctx, c.kv, &pb.RangeRequest{KeysOnly: true}, since, func(pair *mvccpb.KeyValue) {
		found.byDocument[c.documentName(pair)] = pair.ModRevision
	})
	found.revision, found.err = header.GetRevision(), err
	return found
}

// handleResult compares the result of a read with what the run has. It schedules a recheck
// after the grace period if they differ, because the watch may still deliver the change.
func (c *comparison) handleResult(found revisions) error {
	c.reading = false
	if found.err != nil {
		if errors.Is(found.err, errReplaced) {
			return found.err
		}
		return nil // the watch works; the next comparison tries again
	}
	if c.mismatched = c.mismatches(found); c.mismatched != nil {
		c.timer.Reset(c.grace())
	}
	return nil
}

// mismatches returns the documents whose revisions differ from those found, except
// those that the watch has updated since. It returns nil if there are none.
func (c *comparison) mismatches(found revisions) map[string]int64 {
	mismatched := make(map[string]int64)
	for name, known := range c.versions {
		if known != found.byDocument[name] && known <= found.revision {
			mismatched[name] = known
		}
	}
	for name := range found.byDocument {
		// A document that the run does not have may have been deleted since.
		if _, known := c.versions[name]; !known && c.position.revision <= found.revision {
			mismatched[name] = 0
		}
	}
	if len(mismatched) == 0 {
		return nil
	}
	return mismatched
}

// recheck returns an error if the watch has still not updated a document that differed.
func (c *comparison) recheck() error {
	mismatched := c.mismatched
	c.mismatched = nil
	for name, known := range mismatched {
		if c.versions[name] == known {
			return fmt.Errorf("%w: %q is not as it was read %v ago", errMissed, c.keys.Documents+name, c.grace())
		}
	}
	return nil
}
