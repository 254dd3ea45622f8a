package flow

import (
	"fmt"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// warning is the warning of a version of a rule that has one.
type warning struct {
	from int64 // tokens of the window
	warn func(string)
}

// warnBy has the limiter warn as its rule says.
func (l *RuleLimiter) warnBy(warn func(string)) *RuleLimiter {
	if r := l.compiled.rule; r.WarnAt > 0 && l.window != nil && warn != nil {
		l.warning = &warning{from: rule.WarnFrom(r.WarnAt, r.Limit), warn: warn}
	}
	return l
}

// noteUse warns once in each window of which so much is used as the rule says.
func (l *RuleLimiter) noteUse(now clock.Instant) {
	r := l.compiled
	used := r.most - l.window.counts.Remaining()
	if used < l.warning.from {
		return
	}
	if first, _ := l.window.warned.First(r.bucketOf(now)/int64(max(1, r.rule.Buckets)), 0); first {
		l.warning.warn(fmt.Sprintf("%d of %v tokens of the window are used, of which the rule says to warn (warnAt %v)",
			used, r.rule.Limit, r.rule.WarnAt))
	}
}
