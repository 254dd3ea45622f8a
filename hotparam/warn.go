package hotparam

import (
	"fmt"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/warnonce"
	"github.com/penstock-go/penstock/rule"
)

// noteUse warns of a value of whose window so much is used as the rule says: once of each value in a
// window, of the first [warnonce.MaxKeys] of them.
func (l *limiter) noteUse(s subject, now clock.Instant, value rule.Attribute) {
	limit := l.limits[s.class]
	if limit == 0 || l.warn == nil {
		return
	}
	used := l.tablesOf(s, now).windows.Used(s.key, l.terms, now)
	if used < rule.WarnFrom(l.rule.WarnAt, limit) {
		return
	}
	switch first, full := l.state.warned.First(l.windowNumber(now), s.key); {
	case first:
		l.warn(fmt.Sprintf("%d of %v tokens of the window of the value %q are used, of which the rule says to warn (warnAt %v)",
			used, limit, l.shown(s, value), l.rule.WarnAt))
	case full:
		l.warn(fmt.Sprintf("more than %d values have used so much of this window as the rule says to warn of (warnAt %v): the others are not named",
			warnonce.MaxKeys, l.rule.WarnAt))
	}
}

// windowNumber tells windows apart. Of a sliding window it changes once in each time of its length.
func (l *limiter) windowNumber(now clock.Instant) int64 {
	if windows := l.terms.Calendar(); windows != nil {
		return windows.Number(now)
	}
	return int64(now) / int64(l.rule.Window)
}
