package lease

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// lease is tokens that the store has granted and that were not used yet.
type lease struct {
	from, end clock.Instant // when they may be used
	tokens    int64
	origin    origin
}

// origin is where granted tokens count.
type origin struct {
	bucket int64         // [fleet.Reply.Bucket]
	until  clock.Instant // up to when it helps to hand them back
}

// leases are used in the order in which they end.
type leases []lease

func (l *leases) add(one lease) {
	at := slices.IndexFunc(*l, func(other lease) bool { return other.end > one.end })
	if at < 0 {
		at = len(*l)
	}
	*l = slices.Insert(*l, at, one)
}

func (l leases) tokens() (sum int64) {
	for i := range l {
		sum += l[i].tokens
	}
	return sum
}

// use takes tokens from the first leases, and returns how many there were not.
func (l *leases) use(tokens int64) int64 {
	for len(*l) > 0 && tokens > 0 {
		part := min(tokens, (*l)[0].tokens)
		(*l)[0].tokens -= part
		tokens -= part
		if (*l)[0].tokens == 0 {
			*l = slices.Delete(*l, 0, 1)
		}
	}
	return tokens
}

// takeEnding removes the first lease if it ends by an instant.
func (l *leases) takeEnding(by clock.Instant) (lease, bool) {
	if len(*l) == 0 || (*l)[0].end > by {
		return lease{}, false
	}
	first := (*l)[0]
	*l = slices.Delete(*l, 0, 1)
	return first, true
}

// takeStarted removes a lease that may be used by an instant.
func (l *leases) takeStarted(by clock.Instant) (lease, bool) {
	at := slices.IndexFunc(*l, func(one lease) bool { return one.from <= by })
	if at < 0 {
		return lease{}, false
	}
	started := (*l)[at]
	*l = slices.Delete(*l, at, at+1)
	return started, true
}

// firstStart returns when the first lease may be used, never if there is none.
func (l leases) firstStart() clock.Instant {
	start := exchange.Never
	for i := range l {
		start = min(start, l[i].from)
	}
	return start
}

// firstEnd returns when the first lease ends, never if there is none.
func (l leases) firstEnd() clock.Instant {
	if len(l) == 0 {
		return exchange.Never
	}
	return l[0].end
}

// returned is tokens to be handed back.
type returned struct {
	origin origin
	tokens int64
}

// returns are tokens to be handed back, by their origins.
type returns []returned

func (r *returns) add(o origin, tokens int64) {
	for i := range *r {
		if (*r)[i].origin.bucket == o.bucket {
			(*r)[i].tokens += tokens
			return
		}
	}
	*r = append(*r, returned{o, tokens})
}

// take removes what is worth handing back at an instant, of one origin.
func (r *returns) take(now clock.Instant) returned {
	*r = slices.DeleteFunc(*r, func(one returned) bool { return one.origin.until <= now })
	if len(*r) == 0 {
		return returned{}
	}
	first := (*r)[0]
	*r = slices.Delete(*r, 0, 1)
	return first
}
