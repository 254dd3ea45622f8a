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

// errMissed ends a watch that has not brought what was written.
var errMissed = errors.New("the watch has missed a change, all is read again")

// comparison compares, once in a while, the revisions of the documents with those
// in etcd. It finds what no watch tells of: a proxy in between may resume its own
// watch, at a cluster that was restored meanwhile. It belongs to the goroutine of
// the run.
type comparison struct {
	*run
	kv    pb.KVClient
	timer clock.Timer

	reading   bool            // in the background
	readers   *sync.WaitGroup // for that
	found     chan revisions
	different map[string]int64 // documents that differ from those found: what the run has of them
}

// revisions are those of all documents at one revision of etcd.
type revisions struct {
	of       map[string]int64 // see run.versions
	revision int64
	err      error
}

func newComparison(life *signsOfLife) *comparison {
	c := &comparison{run: life.run, kv: life.kv, readers: life.reading, found: make(chan revisions, 1)}
	c.timer = c.opts.Clock.NewTimer(c.pause())
	return c
}

// pause draws how long it is until the next comparison.
func (c *comparison) pause() time.Duration {
	interval := c.opts.CompareInterval
	return interval - interval/4 + rand.N(interval/2+1) //nolint:gosec // spreads load, guards no secret
}

// grace is how long a change may be on its way after a read has seen it.
func (c *comparison) grace() time.Duration {
	return min(c.opts.RequestTimeout, c.opts.CompareInterval/4)
}

// next is to be called when the timer has fired. It begins a comparison, or ends
// one that has found something different: with an error if that still is.
func (c *comparison) next(ctx context.Context) error {
	c.timer.Reset(c.pause())
	if c.different != nil {
		return c.judge()
	}
	if c.reading {
		return nil
	}
	c.reading = true
	since := c.at
	c.readers.Go(func() { c.found <- c.read(ctx, since) })
	return nil
}

// read reads the revisions of all documents, later than since.
func (c *comparison) read(ctx context.Context, since moment) revisions {
	found := revisions{of: make(map[string]int64)}
	header, err := c.readPages(ctx, c.kv, &pb.RangeRequest{KeysOnly: true}, since, func(pair *mvccpb.KeyValue) {
		found.of[c.documentName(pair)] = pair.ModRevision
	})
	found.revision, found.err = header.GetRevision(), err
	return found
}

// take compares. What differs may be on its way: it gets some time.
func (c *comparison) take(found revisions) error {
	c.reading = false
	if found.err != nil {
		if errors.Is(found.err, errReplaced) {
			return found.err
		}
		return nil // the watch stands, and the next comparison may be made
	}
	if c.different = c.differences(found); c.different != nil {
		c.timer.Reset(c.grace())
	}
	return nil
}

// differences returns the documents that are not as they were found, unless the
// watch has brought later changes of them.
func (c *comparison) differences(found revisions) map[string]int64 {
	different := make(map[string]int64)
	for name, known := range c.versions {
		if known != found.of[name] && known <= found.revision {
			different[name] = known
		}
	}
	for name := range found.of {
		// A document that is not known may have been deleted since.
		if _, known := c.versions[name]; !known && c.at.revision <= found.revision {
			different[name] = 0
		}
	}
	if len(different) == 0 {
		return nil
	}
	return different
}

// judge returns an error if nothing has come of a document that is different.
func (c *comparison) judge() error {
	different := c.different
	c.different = nil
	for name, known := range different {
		if c.versions[name] == known {
			return fmt.Errorf("%w: %q is not as it was read %v ago", errMissed, c.keys.Documents+name, c.grace())
		}
	}
	return nil
}
