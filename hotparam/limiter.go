package hotparam

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule on one resource. All versions share the state.
//
// The engine gets a rateLimiter, a throttle or a concurrencyLimiter, which have what not
// all algorithms can do.
type limiter struct {
	*compiled
	state     *resourceState
	penalties *penalties // nil if the rule has none

	// The tables for this version; nil until the first call.
	main, own atomic.Pointer[tables]
}

type (
	rateLimiter        struct{ limiter }
	throttle           struct{ limiter }
	concurrencyLimiter struct{ limiter }
)

var (
	_ rule.Settler   = (*rateLimiter)(nil)
	_ rule.Activator = (*rateLimiter)(nil)
	_ rule.Settler   = (*throttle)(nil)
	_ rule.Queue     = (*throttle)(nil)
	_ rule.Retirer   = (*throttle)(nil)
	_ rule.Finisher  = (*concurrencyLimiter)(nil)
)

func newLimiter(r Rule, env rule.Env) rule.Limiter {
	c := env.Compiled.(*compiled)
	return c.limiter(c.statesFor(nil, env).newResource())
}

// adopt returns a newer version with the state of the present one, unless the rule is
// about another attribute or counts in another way.
func adopt(present rule.Limiter, r Rule, env rule.Env) rule.Limiter {
	is, ok := present.(interface{ base() *limiter })
	if !ok {
		return nil
	}
	former, c := is.base(), env.Compiled.(*compiled)
	if old := &former.rule; old.Param != r.Param || old.Algorithm != r.Algorithm ||
		(old.Concurrency == 0) != (r.Concurrency == 0) {
		return nil
	}
	c.statesFor(former.state.states, env)
	return c.limiter(former.state)
}

// limiter returns a limiter of this version with a state.
func (c *compiled) limiter(state *resourceState) rule.Limiter {
	switch {
	case c.rule.Algorithm == Throttle:
		l := new(throttle)
		l.init(c, state)
		return l
	case c.rule.Concurrency != 0:
		l := new(concurrencyLimiter)
		l.init(c, state)
		return l
	}
	l := new(rateLimiter)
	l.init(c, state)
	return l
}

func (l *limiter) init(c *compiled, state *resourceState) {
	l.compiled, l.state, l.penalties = c, state, state.penaltiesFor(c)
}

func (l *limiter) base() *limiter { return l }

// subject is the value of a call.
type subject struct {
	key   uint64 // its hash, with the salt of the limiter
	class int
	isOwn bool // it has a state of its own
}

// missingKey is the key of the calls without a value.
const missingKey = prime2

// limited is the decision on a call that is held against the limit of its value.
const limited = rule.Wait

// subjectOf returns the value of a call. The decision is limited, or Pass or Block of a
// call without a value.
func (l *limiter) subjectOf(value *rule.Attribute) (s subject, decision rule.Decision) {
	if !value.IsSet() {
		switch l.rule.Missing {
		case MissingShare:
			return subject{missingKey ^ l.state.salt, 0, true}, limited
		case MissingBlock:
			return s, rule.Block
		}
		return s, rule.Pass
	}
	s.key = l.state.hasher.hash(*value) ^ l.state.salt
	if len(l.exact) > 0 {
		if entry := l.values.exactOf(*value); entry >= 0 {
			s.class, s.isOwn = l.exact[entry], true
			return s, limited
		}
	}
	if len(l.patterns) > 0 {
		if pattern := l.values.patternOf(*value); pattern >= 0 {
			s.class = l.patterns[pattern]
		}
	}
	return s, limited
}

// tablesOf returns the table that has the state of a value.
func (l *limiter) tablesOf(s *subject, now clock.Instant) *tables {
	if s.isOwn {
		return l.ownTables(now)
	}
	return l.mainTables(now)
}

func (l *limiter) mainTables(now clock.Instant) *tables {
	if t := l.main.Load(); t != nil {
		return t
	}
	t := l.state.main.tablesFor(l.compiled, l.rule.MaxValues, now)
	l.main.Store(t)
	return t
}

// ownSpace is how many times more slots there are than values with a state of their own:
// so each of them finds one.
const ownSpace = 4

func (l *limiter) ownTables(now clock.Instant) *tables {
	if t := l.own.Load(); t != nil {
		return t
	}
	t := l.state.own.tablesFor(l.compiled, ownSpace*(len(l.exact)+1), now)
	l.own.Store(t)
	return t
}

// Acquire decides on a call and takes what it takes, in one step.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(&c.Attribute)
	if decision != limited {
		return 0, decision
	}
	ticket, outcome := l.take(&s, &c)
	switch outcome {
	case table.Taken:
		return ticket, rule.Pass
	case table.Stale:
		return 0, rule.Stale
	}
	l.refuse(&s, &c)
	return 0, rule.Block
}

// take takes what a call takes, if it may pass now.
func (l *limiter) take(s *subject, c *rule.Call) (ticket rule.Ticket, outcome table.Outcome) {
	if l.penalties != nil && l.penalties.left(s.key, c.Now) > 0 {
		return 0, table.Refused
	}
	t := l.tablesOf(s, c.Now)
	var place table.Place
	switch {
	case t.buckets != nil:
		place, outcome = t.buckets.Take(s.key, l.now[s.class], c.Now, c.Tokens)
	case t.windows != nil:
		place, outcome = t.windows.Take(s.key, l.terms, int64(l.limits[s.class]), c.Now, c.Tokens)
	default:
		place, outcome = t.concurrency.Acquire(s.key, l.version, int64(l.limits[s.class]))
	}
	if outcome != table.Taken {
		return 0, outcome
	}
	l.pass(s, c)
	return t.ticket(place, s.isOwn), table.Taken
}

// pass notes that a call passes.
func (l *limiter) pass(s *subject, c *rule.Call) {
	l.state.keep(c.Now, l.keeps)
	l.state.hottest.count(l.state, c.Now, s.key, &c.Attribute, true)
}

// refuse notes that a call is refused.
func (l *limiter) refuse(s *subject, c *rule.Call) {
	if l.penalties != nil && l.penalties.left(s.key, c.Now) == 0 {
		l.penalties.refused(s.key, c.Now)
		l.state.keep(c.Now, l.keeps)
	}
	l.state.hottest.count(l.state, c.Now, s.key, &c.Attribute, false)
}

// A ticket is the place of a call in a table, and says which table that is. Those of the
// main table, as long as its size has not changed, are as small as the place.
const (
	ownTicket   = 1 << 62
	numberShift = 50
	numberMask  = 1<<8 - 1
	placeMask   = 1<<numberShift - 1
)

func (t *tables) ticket(p table.Place, isOwn bool) rule.Ticket {
	ticket := rule.Ticket(p) | rule.Ticket(t.number&numberMask)<<numberShift
	if isOwn {
		ticket |= ownTicket
	}
	return ticket
}

// placeOf returns where a ticket says that a call was counted. A call that has waited
// while the size of the table was changed has no place any more.
func (l *limiter) placeOf(now clock.Instant, ticket rule.Ticket) (t *tables, place table.Place) {
	if ticket&ownTicket != 0 {
		t = l.ownTables(now)
	} else {
		t = l.mainTables(now)
	}
	if uint64(ticket)>>numberShift&numberMask != t.number&numberMask {
		return t, 0
	}
	return t, table.Place(ticket & placeMask)
}

// GiveBack undoes an Acquire: another rule refused the call.
func (l *limiter) GiveBack(now clock.Instant, ticket rule.Ticket, tokens int32) {
	if ticket == 0 {
		return // the rule does not limit the call
	}
	switch t, place := l.placeOf(now, ticket); {
	case t.buckets != nil:
		t.buckets.GiveBack(place, now, tokens)
	case t.windows != nil:
		t.windows.GiveBack(place, now, tokens)
	default:
		t.concurrency.Release(place)
	}
}

// settle adds tokens to what a call took, or gives some back if the number is negative.
func (l *limiter) settle(now clock.Instant, ticket rule.Ticket, tokens int32) {
	if ticket == 0 {
		return
	}
	if tokens > 0 {
		l.state.keep(now, addDuration(l.keeps, durationOf(float64(tokens)*l.slowest)))
	}
	if t, place := l.placeOf(now, ticket); t.buckets != nil {
		t.buckets.Settle(place, now, tokens)
	} else {
		t.windows.Settle(place, now, tokens)
	}
}

// Settle corrects what a call took.
func (l *rateLimiter) Settle(now, _ clock.Instant, ticket rule.Ticket, tokens int32) {
	l.settle(now, ticket, tokens)
}

// Done ends a call.
func (l *concurrencyLimiter) Done(ticket rule.Ticket, e rule.Exit) { l.GiveBack(e.Now, ticket, 1) }

// RetryAfter returns how long it takes until such a call passes: the rest of a penalty, or
// until the limit lets it pass, whichever is longer. When calls end, and a place becomes
// free, is unknown.
func (l *limiter) RetryAfter(c rule.Call) time.Duration { return max(l.retryAfter(&c)) }

// retryAfter returns how long it takes until the limit lets such a call pass without
// waiting, and the rest of a penalty.
func (l *limiter) retryAfter(c *rule.Call) (wait, penalty time.Duration) {
	s, decision := l.subjectOf(&c.Attribute)
	switch decision {
	case rule.Pass:
		return 0, 0
	case rule.Block:
		return rule.Never, 0
	}
	switch t, limit := l.tablesOf(&s, c.Now), l.limits[s.class]; {
	case limit == 0:
		wait = rule.Never
	case t.buckets != nil:
		wait = t.buckets.RetryAfter(s.key, l.now[s.class], c.Now, c.Tokens)
	case t.windows != nil:
		wait = t.windows.RetryAfter(s.key, l.terms, int64(limit), c.Now, c.Tokens)
	}
	if l.penalties != nil {
		penalty = l.penalties.left(s.key, c.Now)
	}
	return wait, penalty
}

// Activate puts this version in force, unless a newer one is.
func (l *limiter) Activate(now clock.Instant) {
	s := l.state
	if s.main.present() != nil {
		l.mainTables(now).activate(l.compiled, now)
	}
	if s.own.present() != nil {
		l.ownTables(now).activate(l.compiled, now)
	}
	if l.penalties != nil {
		l.penalties.configure(l.rule.Penalty, l.version)
	}
	if s.busyUntil.Load() > int64(now) {
		s.keep(now, l.keeps)
	}
}

// Idle says whether the states of all values are as new.
func (l *limiter) Idle(now clock.Instant) bool { return l.state.busyUntil.Load() <= int64(now) }

// Status returns the counts of the rule, which are those of all resources together, and
// the hottest values of this resource.
func (l *limiter) Status(now clock.Instant) rule.Status {
	s := l.state.statsAt(now)
	gauges := []float64{
		float64(s.Occupied), float64(l.rule.MaxValues), float64(s.Forgotten), float64(s.WithoutSlot), 0, 0,
	}
	if l.penalties != nil {
		gauges[4], gauges[5] = float64(l.penalties.running(now)), float64(l.penalties.begun.Load())
	}
	return rule.Status{Gauges: gauges, Values: l.state.hottest.of(l.state, now, l.rule.Mask == MaskHash)}
}

// gauges describes what Status returns, in the same order.
func gauges() []rule.Gauge {
	return []rule.Gauge{
		{Name: "values", Help: "Values whose state is kept, on all resources of the rule together."},
		{Name: "max_values", Help: "How many values the rule keeps the state of at the same time."},
		{Name: "forgotten", Help: "How often the state of a value was forgotten, for it was as new, since the rule began."},
		{Name: "without_slot", Help: "Decisions by counters that values share, for the table was full, since the rule began."},
		{Name: "penalised", Help: "Values that are refused outright now."},
		{Name: "penalties", Help: "Penalties since the rule began."},
	}
}
