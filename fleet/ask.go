package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Asker asks the backend for each call, see [ModeAsk]. Calls that ask at the same time go in
// one batch. All methods may be called concurrently.
type Asker struct {
	member    *Member
	terms     Terms
	operation Operation
	onOutage  OnOutage
}

// Answer is the answer to one call.
type Answer struct {
	Allowed bool
	Wait    time.Duration // the call is allowed, but only after this time; of [AskThrottle]
	Retry   time.Duration // the call is denied: how long until one like it can pass; 0: not known, [Never]
	Outage  bool          // the backend did not answer in time: what [OnOutage] makes of it
	Limit   int64         // as in [Reply], as Remaining and Reset; 0 in an outage

	Remaining int64
	Reset     time.Duration
}

// Ask asks for n tokens, at least 1, at now. done is called once: by the timeout at the
// latest, or at once, by Ask, if the answer is known, as in an outage. No lock is held then.
// It must not block.
func (a *Asker) Ask(now clock.Instant, n int32, done func(Answer)) { done(Answer{Outage: true}) }

// DeniedFor returns for how long a denial of the backend still holds for a call that takes n
// tokens, [Never] if for ever, 0 if it is worth asking. It counts nothing.
func (a *Asker) DeniedFor(now clock.Instant, n int32) time.Duration { return 0 }

// GiveBack gives back n tokens that a call took at an instant.
func (a *Asker) GiveBack(taken clock.Instant, n int32) {}

// Settle corrects what a call took at an instant: by more tokens, or, if n is negative, less.
func (a *Asker) Settle(taken clock.Instant, n int32) {}

// Change has the limit go on with other terms, of the same key.
func (a *Asker) Change(terms Terms, operation Operation, onOutage OnOutage, now clock.Instant) {
	a.terms, a.operation, a.onOutage = terms, operation, onOutage
}

// Status tells how the limit is at now.
func (a *Asker) Status(now clock.Instant) LimitStatus { return LimitStatus{Key: a.terms.Key} }

// Idle says whether nothing was asked of late.
func (a *Asker) Idle(now clock.Instant) bool { return true }

// Release says that nobody will ask any more. Calls that have asked get their answers.
func (a *Asker) Release(now clock.Instant) {}
