package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core/internal/journal"
)

// report logs what came of a change of the rules and reports it to the observer. It is
// called without a lock, so that the observer may call the engine.
func (e *Engine) report(o outcome) {
	o.limiters.finish(e.clock.Now())
	e.logUnknownFleet(o.limiters.unknownFleet)
	if o.swap != (Swap{}) {
		e.journal.AddSwap(journal.Swap(o.swap), journal.CauseOf(o.Origin))
		e.noteSwap(&o.swap, o.Origin.Source)
	}
	for _, key := range o.Accepted {
		e.journal.Forget(key)
	}
	rejections := make([]Rejection, len(o.Rejections))
	for i, r := range o.Rejections {
		rejections[i] = Rejection{r.Source, r.Document, r.Revision, publicError(r.Err)}
		e.rejections.Add(1)
		e.journal.AddRejection(journal.Rejection(rejections[i]))
		e.noteRejection(&rejections[i])
	}
	e.journal.Flush(e.clock.Now(), false)
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

// flushLater has what is left to log logged as soon as it may be. With the system's clock that is a timer and
// no goroutine, which would outlive a testing/synctest bubble.
func (e *Engine) flushLater() {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() || !e.journal.Schedule() {
		return
	}
	if c, ok := e.clock.(interface {
		AfterFunc(d time.Duration, do func())
	}); ok {
		e.flushAfter(c.AfterFunc)
		return
	}
	at := e.clock.Now().Add(journal.Interval)
	e.keepRunning(func() {
		for ; ; at = e.clock.Now().Add(journal.Interval) {
			if e.sleepers.Until(context.Background(), at) != nil {
				return // Close logs the rest
			}
			if !e.flushNow() {
				return
			}
		}
	})
}

// flushNow logs what may be logged, and returns whether there is more.
func (e *Engine) flushNow() bool {
	e.journal.Flush(e.clock.Now(), false)
	return e.journal.Proceed()
}

// flushAfter is flushLater with a function that calls another one after a time.
func (e *Engine) flushAfter(afterFunc func(time.Duration, func())) {
	afterFunc(journal.Interval, func() {
		e.rules.mu.Lock()
		defer e.rules.mu.Unlock()
		if e.isClosed() {
			return // Close logs the rest
		}
		e.keepRunning(func() { // Close waits for it
			if e.flushNow() {
				e.flushAfter(afterFunc)
			}
		})
	})
}
