package hotparam

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
)

// tellExpired logs that places were given back because they were held for longer than
// [Rule.MaxAge], at most once a minute.
func (l *limiter) tellExpired(t *table.Concurrency, now clock.Instant) {
	quiet := l.state.quietUntil.Load()
	if l.warn == nil || int64(now) < quiet {
		return
	}
	places := t.Untold()
	if places == 0 || !l.state.quietUntil.CompareAndSwap(quiet, int64(now.Add(time.Minute))) {
		return
	}
	held := "1 place was held for longer than maxAge, which is %v, and counts"
	if places > 1 {
		held = fmt.Sprint(places) + " places were held for longer than maxAge, which is %v, and count"
	}
	l.warn(fmt.Sprintf(held+" as given back: find what does not end its call, or raise maxAge", l.rule.MaxAge))
}

// aged returns how long the oldest place is held, in seconds, and how many were given back because of
// their age.
func (l *limiter) aged(now clock.Instant) (oldest, expired float64) {
	for _, t := range []*tables{l.state.main.present(), l.state.own.present()} {
		if t != nil && t.concurrency != nil {
			oldest = max(oldest, t.concurrency.Oldest(now).Seconds())
			expired += float64(t.concurrency.Expired())
		}
	}
	return oldest, expired
}
