package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// reportRefusal reports a refusal to the observer and, at most once a second per
// resource, to the log.
func (r *resource) reportRefusal(ctx context.Context, now clock.Instant, err *BlockError) {
	e := r.engine
	if e.observer.Refused != nil {
		e.observer.Refused(orBackground(ctx), err)
	}
	if !r.markLogged(now) {
		return
	}
	facts := []any{
		slog.String("resource", err.Resource),
		slog.String("kind", string(err.Kind)),
		slog.String("rule", err.Rule),
	}
	if err.RetryAfter != 0 || err.Reason != rule.Denied { // waiting does not make a caller one who may call
		facts = append(facts, slog.String("retryAfter", err.retryText()))
	}
	e.log.Info("penstock: call refused, further refusals in this second are not logged", facts...)
	e.journal.flush(now, false)
}

// markLogged reports whether a refusal at now is the first of its second, and so
// the one that is logged. The mark only moves forward: a call of an earlier
// second that is refused late is not logged. A clock is not supposed to go back;
// where one does, the mark follows it, so that the log does not stay silent.
func (r *resource) markLogged(now clock.Instant) bool {
	next := 1 + int64(now)/int64(time.Second) // 0 is a mark that was never set
	last := r.logged.Load()
	if last == next {
		return false
	}
	if last > next {
		// Read after the mark, a clock that never goes back is not behind it.
		if next = 1 + int64(r.engine.clock.Now())/int64(time.Second); next >= last {
			return false
		}
	}
	return r.logged.CompareAndSwap(last, next)
}

// report logs what came of a change of the rules and reports it to the observer. It is
// called without a lock, so that the observer may call the engine.
func (e *Engine) report(o outcome) {
	o.limiters.finish(e.clock.Now())
	e.logUnknownFleet(o.limiters.unknownFleet)
	if o.swap != (Swap{}) {
		e.journal.addSwap(o.swap, causeOf(o.Origin))
	}
	for _, key := range o.Accepted {
		e.journal.forget(key)
	}
	rejections := make([]Rejection, len(o.Rejections))
	for i, r := range o.Rejections {
		rejections[i] = Rejection{r.Source, r.Document, r.Revision, publicError(r.Err)}
		e.rejections.Add(1)
		e.journal.addRejection(rejections[i])
	}
	e.journal.flush(e.clock.Now(), false)
	e.flushLater()
	if o.swap != (Swap{}) && e.observer.Swapped != nil {
		e.observer.Swapped(o.swap)
	}
	if e.observer.Rejected == nil {
		return
	}
	for _, rejection := range rejections {
		e.observer.Rejected(rejection)
	}
}

// flushLater has what is left to log logged as soon as it may be.
func (e *Engine) flushLater() {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() || !e.journal.schedule() {
		return
	}
	at := e.clock.Now().Add(logInterval)
	e.running.Go(func() {
		timer := clock.TimerAt(e.clock, at)
		defer timer.Stop()
		for {
			select {
			case <-timer.C():
			case <-e.closed: // Close logs the rest
				return
			}
			e.journal.flush(e.clock.Now(), false)
			if !e.journal.proceed() {
				return
			}
			timer.Reset(logInterval)
		}
	})
}
