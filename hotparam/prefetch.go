package hotparam

import (
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// prefetchFrom is from how many values on it is worth while to prefetch: a table for as many has
// 1 MiB or more. Of a smaller one most is in the near caches.
const prefetchFrom = 1 << 17

var (
	_ optional.Prefetcher = (*limiter)(nil)
	_ optional.Prefetcher = (*throttle)(nil)
	_ optional.Prefetcher = (*concurrencyLimiter)(nil)
)

// Prefetches implements [optional.Prefetcher]. A rule that does not say how many values it has mostly
// has few: its table is small until somebody makes values up.
func (l *limiter) Prefetches() bool {
	return l.rule.MaxValues >= prefetchFrom && !l.rule.hasDefaultSize()
}

// Prefetch begins to load the groups that a value may have its slot in.
func (l *limiter) Prefetch(value rule.Attribute) {
	switch t := l.main.Load(); {
	case t == nil: // no call has come yet
	case t.buckets != nil:
		t.buckets.Prefetch(l.keyOf(value))
	case t.windows != nil:
		t.windows.Prefetch(l.keyOf(value))
	default:
		t.concurrency.Prefetch(l.keyOf(value))
	}
}
