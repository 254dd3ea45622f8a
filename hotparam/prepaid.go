package hotparam

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/prepaid"
	"github.com/penstock-go/penstock/rule"
)

// prepaidLimiter is one version of a rule with a balance of each value, on this instance. Of the
// limiter of a rate it has all but the tables.
type prepaidLimiter struct{ limiter }

var (
	_ optional.Balancer    = (*prepaidLimiter)(nil)
	_ optional.Recharger   = (*prepaidLimiter)(nil)
	_ rule.QuotaReader     = (*prepaidLimiter)(nil)
	_ optional.ValueKeeper = (*prepaidLimiter)(nil)
	_ rule.Activator       = (*prepaidLimiter)(nil)
	_ rule.Retirer         = (*prepaidLimiter)(nil)
	_ optional.Recharger   = (*askLimiter)(nil)
)

// prepaidState is what all versions of a prepaidLimiter have in common.
type prepaidState struct {
	balances *prepaid.Balances
	inForce  atomic.Uint64 // the latest version that a call has come to, or that was activated
	full     atomic.Uint64 // decisions that there was no space for a balance
	sweptAt  atomic.Int64  // the instant at which space was made last
}

// mostBalances is how many there may be: beyond MaxValues, each source has its share of them.
func (r *Rule) mostBalances() int { return r.MaxValues + r.MaxValues/5 }

// sweepPause is how often calls may make space.
const sweepPause = time.Second

var (
	errFull     = errors.New("there are as many balances as the rule can have: raise maxValues")
	errChanging = errors.New("the rule is changing: try again")
	errBalance  = errors.New("the rule has a balance of each value: recharge it, with a negative number to take something off")
)

// terms are those of the balance of a value.
func (l *prepaidLimiter) termsOf(class int) prepaid.Terms {
	return prepaid.Terms{Version: l.version, Limit: int64(l.limits[class])}
}

// enter says whether this version is the one in force, or newer, and puts it in force.
func (s *prepaidState) enter(version uint64) bool {
	for {
		switch present := s.inForce.Load(); {
		case present > version:
			return false
		case present == version || s.inForce.CompareAndSwap(present, version):
			return true
		}
	}
}

// Acquire takes what the call takes from the balance of its value, if so much is left.
func (l *prepaidLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.unknownSource())
}

// AcquireFrom decides on a call of which is known where it comes from.
func (l *prepaidLimiter) AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision) {
	return l.acquire(c, l.sourceOf(source))
}

func (l *prepaidLimiter) acquire(c rule.Call, from table.Source) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	switch {
	case decision != limited:
		return undecided(decision)
	case !l.state.prepaid.enter(l.version):
		return 0, rule.Stale
	case l.isPenalised(s, c.Now):
		return l.refuse(s, c, 0, false)
	}
	decision, full := l.take(s, c, from)
	switch decision {
	case rule.Stale, optional.NeedsSource:
		return 0, decision
	case rule.Block:
		return l.refuse(s, c, 0, full)
	}
	if !l.state.hottest.leavesOut(c.Now, s.key) {
		l.state.hottest.count(l.state, c.Now, s.key, c.Attribute, true)
	}
	return keyTicket | rule.Ticket(min(s.class, classMask))<<classShift | ticketKey(s.key), rule.Pass
}

// take takes from the balance of a value. full says that there is no space for one.
func (l *prepaidLimiter) take(s subject, c rule.Call, from table.Source) (decision rule.Decision, full bool) {
	of, terms := l.state.prepaid, l.termsOf(s.class)
	if decision, full = of.balances.Take(s.key, terms, c.Tokens, l.rule.MaxValues, 0); !full {
		return decision, false
	}
	if at := of.sweptAt.Load(); int64(c.Now) >= at+int64(sweepPause) && of.sweptAt.CompareAndSwap(at, int64(c.Now)) {
		of.balances.Sweep()
		if decision, full = of.balances.Take(s.key, terms, c.Tokens, l.rule.MaxValues, 0); !full {
			return decision, false
		}
	}
	if s.isOwn {
		from = table.NoSource
	}
	if from == table.UnknownSource {
		return optional.NeedsSource, false
	}
	if l.state.holders.MayLast(from) {
		decision, full = of.balances.Take(s.key, terms, c.Tokens, l.rule.mostBalances(), uint64(from))
	}
	if full {
		of.full.Add(1)
		l.noteFull()
	}
	return decision, full
}

// correct corrects what a call took.
func (l *prepaidLimiter) correct(t rule.Ticket, tokens int32) {
	if t&keyTicket == 0 {
		return // the rule does not limit the call
	}
	if key, class := keyIn(t); class < len(l.limits) {
		l.state.prepaid.balances.Correct(key, l.termsOf(class), tokens)
	}
}

// GiveBack gives back what Acquire took.
func (l *prepaidLimiter) GiveBack(_ clock.Instant, t rule.Ticket, tokens int32) {
	l.correct(t, -tokens)
}

// Settle corrects what a call took, also if the balance falls below 0.
func (l *prepaidLimiter) Settle(_, _ clock.Instant, t rule.Ticket, tokens int32) {
	l.correct(t, tokens)
}

// Refund does nothing: it is not known how much calls took that could be given back.
func (*prepaidLimiter) Refund(rule.Call) {}

// Recharge changes the balance of a value.
func (l *prepaidLimiter) Recharge(c rule.Call, tokens int64, done func(left int64, err error)) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		done(0, errNoValue)
		return
	}
	balances, terms := l.state.prepaid.balances, l.termsOf(s.class)
	left, full, err := balances.Add(s.key, terms, tokens, l.rule.mostBalances())
	if full {
		balances.Sweep()
		left, full, err = balances.Add(s.key, terms, tokens, l.rule.mostBalances())
	}
	if full {
		err = errFull
	}
	done(left, err)
}

// Balance returns what is left of the balance that a call took from.
func (l *prepaidLimiter) Balance(_, _ clock.Instant, t rule.Ticket) (left int64, known bool) {
	key, class := keyIn(t)
	if t&keyTicket == 0 || class >= len(l.limits) {
		return 0, false
	}
	return l.state.prepaid.balances.Left(key, l.termsOf(class)), true
}

// RetryAfter is the rest of a penalty: when somebody recharges a balance is not known.
func (l *prepaidLimiter) RetryAfter(c rule.Call) time.Duration {
	switch s, decision := l.subjectOf(c.Attribute); {
	case decision == rule.Block:
		return rule.Forbidden
	case decision == limited && l.penalties != nil:
		return l.penalties.left(s.key, c.Now)
	}
	return 0
}

// Activate puts this version in force, unless a newer one is. Balances go over to it when they are
// looked up next.
func (l *prepaidLimiter) Activate(clock.Instant) {
	if l.state.prepaid.enter(l.version) {
		l.state.holders.Resize(l.rule.MaxValues)
	}
	if l.penalties != nil {
		l.penalties.configure(l.rule.Penalty, l.version)
	}
}

// Retire forgets all balances: the rule is gone.
func (l *prepaidLimiter) Retire(clock.Instant) { l.state.prepaid.balances.Close() }

// Idle says whether all balances are as at first.
func (l *prepaidLimiter) Idle(now clock.Instant) bool {
	return l.limiter.Idle(now) && l.state.prepaid.balances.Sweep()
}

// Status returns the counts of the rule and the hottest values.
func (l *prepaidLimiter) Status(now clock.Instant) rule.Status {
	status := l.limiter.Status(now)
	count := l.state.balances.Count()
	status.Gauges[0], status.Gauges[3] = float64(count), float64(l.state.prepaid.full.Load())
	status.Gauges[gaugeBytes] = float64(count * prepaid.SizeOfBalance)
	return status
}

// QuotaOf returns what is left of the balance of a call's value.
func (l *prepaidLimiter) QuotaOf(c rule.Call) *rule.Quota {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return nil
	}
	q := l.quota(s, c.Now)
	left := l.state.prepaid.balances.Left(s.key, l.termsOf(s.class))
	q.Prepaid, q.Remaining, q.Used, q.Capacity = true, max(0, left), max(0, q.Limit-float64(left)), q.Limit
	l.penalise(q, s, c)
	return q
}

// ValueOf returns the state of the value of a call.
func (l *prepaidLimiter) ValueOf(c rule.Call) optional.ValueState {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return optional.ValueState{Used: math.NaN()}
	}
	state := l.valueState(s, c)
	state.Quota = l.QuotaOf(c)
	return state
}

// ResetValue is not possible: that would be to take somebody's balance, or to give some.
func (*prepaidLimiter) ResetValue(rule.Call) error { return errBalance }

// Recharge changes the balance of a value in the fleet.
func (l *askLimiter) Recharge(c rule.Call, tokens int64, done func(left int64, err error)) {
	s, decision := l.subjectOf(c.Attribute)
	switch {
	case l.rule.Algorithm != Prepaid:
		done(0, rule.ErrNoBalance)
		return
	case decision != limited:
		done(0, errNoValue)
		return
	}
	switch v, _ := l.find(s, c, table.NoSource); {
	case v == nil:
		done(0, errChanging)
	case v.cell > 0:
		done(0, errFull)
	default:
		v.asker.Recharge(c.Now, tokens, done)
	}
}
