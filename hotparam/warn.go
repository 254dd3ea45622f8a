package hotparam

import (
	"fmt"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/internal/warnonce"
	"github.com/penstock-go/penstock/rule"
)

// noteUse warns of a value of whose window so much is used as the rule says: once of each value in a
// window, of the first [warnonce.MaxKeys] of them.
func (l *limiter) noteUse(s subject, now clock.Instant, value rule.Attribute) {
	if l.limits[s.class] == 0 || l.warn == nil {
		return
	}
	if used := l.tablesOf(s, now).windows.Used(s.key, l.terms, now); l.hasToWarn(s, used) {
		l.warnOf(s, used, l.windowNumber(now), func() string { return l.shown(s, value) })
	}
}

// hasToWarn says whether so many tokens are as many as the rule says to warn of.
func (l *limiter) hasToWarn(s subject, used int64) bool {
	return used >= settings.WarnFrom(l.rule.WarnAt, l.limits[s.class])
}

// warnOf warns of a value, once in a window.
func (l *limiter) warnOf(s subject, used, window int64, name func() string) {
	of := warnonce.Window{Length: l.rule.Calendar.Length(l.rule.Window), Number: window}
	switch first, full := l.state.warned.First(of, s.key); {
	case first:
		l.warn(fmt.Sprintf("%d of %v tokens of the window of the value %q are used, of which the rule says to warn (warnAt %v)",
			used, l.limits[s.class], name(), l.rule.WarnAt))
	case full:
		l.warn(fmt.Sprintf("more than %d values have used so much of this window as the rule says to warn of (warnAt %v): the others are not named",
			warnonce.MaxKeys, l.rule.WarnAt))
	}
}

// noteUse warns of the value of a call that has an answer of the fleet, if so much is used of its window
// as the rule says. A cell is no value's.
func (w *askWaiter) noteUse() {
	l := w.limiter
	if l.rule.WarnAt == 0 || l.warn == nil || w.value.cell > 0 {
		return
	}
	if used, window, known := w.value.asker.Used(); known && l.hasToWarn(w.subject, used) {
		l.warnOf(w.subject, used, window, func() string { return shownValue(&w.name, w.subject.key, l.rule.Mask == rule.MaskHash) })
	}
}

// windowNumber tells windows apart. Of a sliding window it changes once in each time of its length.
func (l *limiter) windowNumber(now clock.Instant) int64 {
	if windows := l.windows(); windows != nil {
		return windows.Number(now)
	}
	return int64(now) / int64(l.rule.Window)
}
