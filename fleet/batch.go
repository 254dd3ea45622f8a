package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// Batch is what a member sends at once.
type Batch struct {
	Requests []Request // for [Store.Exchange]; may be empty
	Replies  []Reply   // one for each request
	Announce *Instance // for [Backend.Announce]; nil if nothing is to be announced
	Fleet    Fleet     // what Announce returned

	// WithInstances is for [Backend.Announce].
	WithInstances bool

	announceErr error // what the backend said instead of announcing

	to       *partition  // whose limits the requests are of
	askers   []requester // who made the requests
	ofGroups bool        // they are of groups
	sent     clock.Instant
	deadline clock.Instant
	ended    bool        // it was answered, or has failed
	arrived  atomic.Bool // the answer is there, and is taken as soon as the member is free
	cancel   func()      // nil if whoever sends it does not need it
}

// requester takes the answer to a request, or why there is none. The mutex of the member is held.
type requester interface {
	answered(now clock.Instant, reply *Reply)
	unanswered(now clock.Instant, err error)
}

// Send makes the requests of the batch and announces what is to be announced, and writes the
// answers into the batch. It returns an error if the backend has answered nothing, or
// panicked. What a backend says is that nothing else of the batch has an answer.
func (b *Batch) Send(ctx context.Context, backend Backend) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: it panicked: %v", ErrUnavailable, r)
		}
	}()
	if len(b.Requests) > 0 {
		store, ok := backend.(Store)
		if !ok {
			return ErrUnsupported
		}
		store.Exchange(ctx, b.Requests, b.Replies)
		err = b.exchanged()
	}
	if err != nil || b.Announce == nil {
		return err
	}
	b.Fleet, err = backend.Announce(ctx, *b.Announce, b.WithInstances)
	if isUnavailable(err) {
		return err
	}
	b.announceErr = err
	return nil
}

// isUnavailable says whether an error means that a backend did not answer.
func isUnavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// exchanged returns an error if no request has an answer.
func (b *Batch) exchanged() error {
	for i := range b.Replies {
		if !isUnavailable(b.Replies[i].Err) {
			return nil
		}
	}
	return b.Replies[0].Err
}

// isOfLost says whether it has requests, all of limits whose requests have no answer again and
// again: it tells nothing of the backend as a whole.
func (b *Batch) isOfLost() bool {
	for _, by := range b.askers {
		lost := 0
		switch by := by.(type) {
		case *pending:
			lost = by.budget.lost
		case *asking:
			lost = by.asker.lost
		case *placesClaim:
			lost = by.places.lost
		case *valueClaim:
			lost = by.shard.lost
		}
		if lost < maxLost-1 {
			return false
		}
	}
	return len(b.askers) > 0
}
