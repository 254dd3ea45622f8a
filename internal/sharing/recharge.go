package sharing

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

const (
	// balanceDenial is for how long nobody asks again whether a balance has tokens: another instance
	// may have added some.
	balanceDenial = time.Second

	// balanceKnown is for how long an answer says what a balance has, for whoever looks.
	balanceKnown = time.Minute

	// balanceWindow is the [fleet.Terms.Window] of a balance, which has none: averages are over some time.
	balanceWindow = 24 * time.Hour
)

// deniedBy returns for how long a reply denies calls that take as much.
func (a *Asker) deniedBy(reply *fleet.Reply) time.Duration {
	if a.operation == fleet.AskBalance {
		return balanceDenial
	}
	return reply.Retry
}

// completed returns the terms with a window, if they are those of a balance.
func completed(t fleet.Terms, o fleet.Operation) fleet.Terms {
	if o == fleet.AskBalance {
		t.Window = balanceWindow
	}
	return t
}

// Recharge adds tokens to a balance, see [fleet.AskBalance], or takes some off if the number is below 0,
// however few are left; 0 changes nothing. done is called once, with what is left or with the reason
// why that is not known: perhaps at once, by Recharge, or after the timeout. No lock is held then.
// Tokens may have been added even if there is no answer; nothing is tried again.
func (a *Asker) Recharge(now clock.Instant, tokens int64, done func(left int64, err error)) {
	m := a.member
	m.mu.Lock()
	defer m.unlock(now)
	r := &recharging{asker: a, done: done}
	switch {
	case a.operation != fleet.AskBalance:
		r.end(0, fmt.Errorf("%w: limit %q is no balance", fleet.ErrUnsupported, a.terms.Key))
	case a.outage.Active && a.outage.Err != nil:
		r.end(0, a.outage.Err)
	case !m.running || a.place < 0 || a.outage.Active:
		r.end(0, fleet.ErrUnavailable)
	default:
		a.count(now)
		a.lastCall = now
		request := fleet.Request{Operation: a.operation, Terms: a.terms, Want: -max(tokens, 0), Owed: max(-tokens, 0), Keep: maxLife}
		m.request(now, request, r, a.group != nil)
	}
}

// recharging is a recharge without an answer.
type recharging struct {
	asker *Asker
	done  func(left int64, err error) // nil when it was called
}

// end has the answer told once the mutex of the member is released. It is held.
func (r *recharging) end(left int64, err error) {
	done := r.done
	if r.done = nil; done != nil {
		r.asker.member.calls = append(r.asker.member.calls, func() { done(left, err) })
	}
}

func (r *recharging) answered(now clock.Instant, reply *fleet.Reply) {
	if reply.Err == nil {
		r.asker.learnOfReturn(now, reply)
	}
	r.end(reply.Remaining, reply.Err)
}

func (r *recharging) unanswered(_ clock.Instant, err error) { r.end(0, err) }
