package hotparam

import (
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.Balancer = (*limiter)(nil)
	_ optional.Balancer = (*fleetLimiter)(nil)
)

// Balance returns how many tokens are left of the limit of a call's value, if it is known which
// that is.
func (l *limiter) Balance(now, _ clock.Instant, ticket rule.Ticket) (left int64, known bool) {
	switch {
	case ticket == 0:
		return 0, false
	case ticket&keyTicket != 0:
		return l.balanceOf(now, ticket)
	}
	t, place := l.placeOf(now, ticket)
	switch {
	case t.buckets != nil:
		tokens, ok := t.buckets.RemainingAt(place, now)
		return int64(math.Floor(tokens)), ok
	case t.windows != nil && len(l.limits) == 1:
		used, ok := t.windows.UsedAt(place, now)
		return int64(l.limits[0]) - used, ok
	}
	return 0, false
}

// balanceOf is Balance for a ticket that has the key of the value.
func (l *limiter) balanceOf(now clock.Instant, ticket rule.Ticket) (left int64, known bool) {
	key, class := keyIn(ticket)
	if class >= len(l.limits) {
		return 0, false // the rule has lost values since
	}
	states := &l.state.main
	if ticket&ownTicket != 0 {
		states = &l.state.own
	}
	switch t := states.present(); {
	case t.buckets != nil:
		return int64(math.Floor(t.buckets.Remaining(key, l.rates.Class(class), now))), true
	case t.windows != nil && (class < classMask || len(l.limits) <= classMask+1):
		return int64(l.limits[class]) - t.windows.Used(key, l.terms, now), true
	}
	return 0, false
}

// Balance is not known: a throttle has no quota.
func (*throttle) Balance(_, _ clock.Instant, _ rule.Ticket) (left int64, known bool) { return 0, false }

// Balance is not known: calls take places.
func (*concurrencyLimiter) Balance(_, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	return 0, false
}

// Balance returns what this instance knows to be left of the limit of a call's value.
func (l *fleetLimiter) Balance(now, _ clock.Instant, ticket rule.Ticket) (left int64, known bool) {
	switch v := l.fleet.valueOf(ticket); {
	case ticket == 0 || v == nil:
		return 0, false
	case v.asker != nil:
		return v.asker.Balance(now)
	default:
		return v.budget.Balance(now)
	}
}
