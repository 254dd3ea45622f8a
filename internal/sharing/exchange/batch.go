package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Batch is what a member sends at once.
type Batch struct {
	Requests []fleet.Request // for [fleet.Store.Exchange]; may be empty
	Replies  []fleet.Reply   // one for each request
	Announce *fleet.Instance // for [fleet.Backend.Announce]; nil if nothing is to be announced
	Fleet    fleet.Fleet     // what Announce returned

	// WithInstances is for [fleet.Backend.Announce].
	WithInstances bool

	announceErr error // what the backend said instead of announcing

	to       *Partition  // whose limits the requests are of
	askers   []Requester // who made the requests
	ofGroups bool        // they are of groups
	sent     clock.Instant
	Deadline clock.Instant
	ended    bool        // it was answered, or has failed
	Arrived  atomic.Bool // the answer is there, and is taken as soon as the member is free
	cancel   func()      // nil if whoever sends it does not need it
}

// Add adds a request whose answer nobody takes.
func (b *Batch) Add(request fleet.Request) {
	b.Requests, b.Replies = append(b.Requests, request), append(b.Replies, fleet.Reply{})
}

// Requester takes the answer to a request, or why there is none. The mutex of the member is held.
type Requester interface {
	Answered(now clock.Instant, reply *fleet.Reply)
	Unanswered(now clock.Instant, err error)

	// UnansweredBefore is how many requests of the limit have no answer since the last one that has one.
	UnansweredBefore() int
}

// Send makes the requests of the batch and announces what is to be announced, and writes the
// answers into the batch. It returns an error if the backend has answered nothing, or
// panicked. What a backend says is that nothing else of the batch has an answer.
func (b *Batch) Send(ctx context.Context, backend fleet.Backend) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: it panicked: %v", fleet.ErrUnavailable, r)
		}
	}()
	if len(b.Requests) > 0 {
		store, ok := backend.(fleet.Store)
		if !ok {
			return fleet.ErrUnsupported
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
	return errors.Is(err, fleet.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
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
		if by.UnansweredBefore() < MaxLost-1 {
			return false
		}
	}
	return len(b.askers) > 0
}

// MaxLost is how many requests of a limit in a row may have no answer, while others have one,
// before the limit goes on without the backend.
const MaxLost = 3
