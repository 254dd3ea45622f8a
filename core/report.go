package core

import (
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// reportRefusal tells the observer of a refusal and, once a second per
// resource, the log.
func (r *resource) reportRefusal(now clock.Instant, err *BlockError) {
	e := r.engine
	if e.observer.Refused != nil {
		e.observer.Refused(err)
	}
	second := int64(now) / int64(time.Second)
	if last := r.logged.Load(); last == second || !r.logged.CompareAndSwap(last, second) {
		return
	}
	e.log.Info("penstock: call refused, further refusals in this second are not logged",
		slog.String("resource", err.Resource),
		slog.String("kind", string(err.Kind)),
		slog.String("rule", err.Rule),
		slog.String("retryAfter", err.retryText()))
}

// report tells what came of putting rules in force. Like every report it is made
// without a lock, so that the observer may ask the engine.
func (e *Engine) report(o outcome) {
	if o.swap != (Swap{}) {
		e.reportSwap(o.swap)
	}
	for _, rejection := range o.rejections {
		e.reportRejection(rejection)
	}
}

func (e *Engine) reportSwap(swap Swap) {
	e.log.Info("penstock: rules swapped",
		slog.Uint64("revision", swap.Revision),
		slog.Int("rules", swap.Rules),
		slog.Int("added", swap.Added),
		slog.Int("changed", swap.Changed),
		slog.Int("removed", swap.Removed),
		slog.Duration("took", swap.Took))
	if e.observer.Swapped != nil {
		e.observer.Swapped(swap)
	}
}

func (e *Engine) reportRejection(rejection Rejection) {
	e.rejections.Add(1)
	message := "penstock: rule document rejected, what was in force of it stays"
	if rejection.Document == "" {
		message = "penstock: change of a source held back, its rules in force stay"
	}
	e.log.Error(message,
		slog.String("source", rejection.Source),
		slog.String("document", rejection.Document),
		slog.Int64("revision", rejection.Revision),
		slog.Any("error", rejection.Err))
	if e.observer.Rejected != nil {
		e.observer.Rejected(rejection)
	}
}
