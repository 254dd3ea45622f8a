package fleet

import (
	"context"

	"github.com/penstock-go/penstock/clock"
)

// Due returns when Step is to be called next: an instant that has passed if at once, the last
// instant there is if never. It becomes earlier when calls come, see Wake.
func (m *Member) Due() clock.Instant { return clock.Instant(m.due.Load()) }

// Wake returns a channel that receives when Due has become earlier.
func (m *Member) Wake() <-chan struct{} { return m.wake }

// Step brings the member up to now, and returns the batches that are to be sent. For each,
// the caller calls Deliver or Fail, in any order. It may be called before it is due.
func (m *Member) Step(now clock.Instant) []*Batch { m.due.Store(int64(now.Add(forever))); return nil }

// Deliver takes the answer to a batch that was sent, which came at now. Answers that come
// after the timeout are taken too, and their tokens handed back.
func (m *Member) Deliver(now clock.Instant, batch *Batch) {}

// Fail says that a batch has no answer, and why. A batch without an answer fails by itself
// in the first Step after the timeout.
func (m *Member) Fail(now clock.Instant, batch *Batch, err error) {}

// Batch is what a member sends at once.
type Batch struct {
	Requests []Request // for [Store.Exchange]; may be empty
	Replies  []Reply   // one for each request
	Announce *Instance // for [Backend.Announce]; nil if nothing is to be announced
	Fleet    Fleet     // what Announce returned

	// WithInstances is for [Backend.Announce].
	WithInstances bool
}

// Send makes the requests of the batch and announces what is to be announced, and writes the
// answers into the batch. It returns an error if the backend did not answer, or panicked.
func (b *Batch) Send(ctx context.Context, backend Backend) error {
	if store, ok := backend.(Store); ok && len(b.Requests) > 0 {
		store.Exchange(ctx, b.Requests, b.Replies)
	}
	if b.Announce == nil {
		return nil
	}
	var err error
	b.Fleet, err = backend.Announce(ctx, *b.Announce, b.WithInstances)
	return err
}
