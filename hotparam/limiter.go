package hotparam

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/prepaid"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule on one resource. All versions share the state.
//
// It is the limiter of a token bucket or a window. The others are a throttle, a
// concurrencyLimiter or a prepaidLimiter.
type limiter struct {
	*compiled
	state     *resourceState
	hasher    *valuehash.Hasher // that of the state
	penalties *penalties        // nil if the rule has none
	sources   bool              // the engine tells where a call comes from, if it is asked
	warn      func(string)

	// The tables for this version; nil until the first call.
	main, own atomic.Pointer[tables]

	growAfter atomic.Int64 // the table cannot grow before this instant
}

type (
	throttle           struct{ limiter }
	concurrencyLimiter struct{ limiter }
)

var (
	_ rule.Settler   = (*limiter)(nil)
	_ rule.Activator = (*limiter)(nil)
	_ rule.Settler   = (*throttle)(nil)
	_ rule.Queue     = (*throttle)(nil)
	_ rule.Retirer   = (*throttle)(nil)
	_ rule.Finisher  = (*concurrencyLimiter)(nil)
)

// newLimiter returns a limiter that counts nothing yet. Without a fleet each instance has the
// limits.
func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	c := env.Compiled.(*compiled)
	c.keepCalendar(env, nil)
	switch {
	case !isOfFleet(r) || env.Fleet == nil:
	case r.Concurrency != 0:
		return newPlacesLimiter(env)
	default:
		return newFleetLimiter(env)
	}
	state := c.statesFor(nil, env).newResource()
	if r.Algorithm == Prepaid {
		state.prepaid = &prepaidState{balances: prepaid.NewBalances(&state.balances)}
	}
	return c.limiter(state, env)
}

// adopt returns a newer version with the state of the present one, unless the rule is
// about another attribute or counts in another way.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	c := env.Compiled.(*compiled)
	c.keepCalendar(env, present)
	_, hasPlaces := present.(*placesLimiter)
	switch {
	case !isOfFleet(r) || env.Fleet == nil:
	case r.Concurrency != 0:
		return adoptPlaces(present, r, env)
	default:
		return adoptFleet(present, r, env)
	}
	is, ok := present.(interface{ base() *limiter })
	if _, ofFleet := present.(interface{ ofFleet() *fleetLimiter }); !ok || ofFleet || hasPlaces {
		return nil
	}
	former := is.base()
	if old := &former.rule; old.Param != r.Param || old.Algorithm != r.Algorithm ||
		(old.Concurrency == 0) != (r.Concurrency == 0) {
		return nil
	}
	c.statesFor(former.state.states, env)
	return c.limiter(former.state, env)
}

// limiter returns a limiter of this version with a state.
func (c *compiled) limiter(state *resourceState, env rule.Env) rule.Limiter {
	switch {
	case c.rule.Algorithm == Prepaid:
		l := new(prepaidLimiter)
		l.init(c, state, env)
		return l
	case c.rule.Algorithm == Throttle:
		l := new(throttle)
		l.init(c, state, env)
		return l
	case c.rule.Concurrency != 0:
		l := new(concurrencyLimiter)
		l.init(c, state, env)
		return l
	}
	l := new(limiter)
	l.init(c, state, env)
	return l
}

func (l *limiter) init(c *compiled, state *resourceState, env rule.Env) {
	l.compiled, l.state, l.hasher, l.penalties = c, state, state.hasher, state.penaltiesFor(c)
	l.sources, l.warn = env.Sources, env.Warn
	if c.rule.Counts != "" { // calls give back when they end: their tickets have to tell the value then
		state.settles.Store(true)
	}
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
func (l *limiter) subjectOf(value rule.Attribute) (s subject, decision rule.Decision) {
	if !value.IsSet() {
		switch l.rule.Missing {
		case rule.MissingShare:
			return subject{key: (missingKey ^ l.state.salt) & keyMask, isOwn: true}, limited
		case rule.MissingBlock, rule.MissingUnauthenticated:
			return s, rule.Block
		}
		return s, rule.Pass
	}
	s.key = l.keyOf(value)
	if len(l.exact) > 0 {
		if entry := l.values.exactOf(value); entry >= 0 {
			s.class, s.isOwn = l.exact[entry], true
			return s, limited
		}
	}
	if len(l.patterns) > 0 {
		if pattern := l.values.patternOf(value); pattern >= 0 {
			s.class = l.patterns[pattern]
		}
	}
	return s, limited
}

// keyOf returns the key of a value.
func (l *limiter) keyOf(value rule.Attribute) uint64 {
	return (l.hasher.Hash(value) ^ l.state.salt) & keyMask
}

// tablesOf returns the table that has the state of a value.
func (l *limiter) tablesOf(s subject, now clock.Instant) *tables {
	if s.isOwn {
		return l.ownTables(now)
	}
	return l.mainTables(now)
}

func (l *limiter) mainTables(now clock.Instant) *tables {
	if t := l.main.Load(); t != nil {
		return t
	}
	return l.bind(now)
}

func (l *limiter) ownTables(now clock.Instant) *tables {
	if t := l.own.Load(); t != nil {
		return t
	}
	l.mainTables(now)
	t := l.state.own.tablesFor(l.compiled, l.ownSize(), math.MaxInt, now)
	l.own.Store(t)
	return t
}

// Acquire decides on a call and takes what it takes, in one step.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	t, place, wait, outcome := l.take(s, c, table.UnknownSource)
	switch outcome {
	case table.Taken:
		return l.pass(t, place, s, c.Now, c.Attribute), rule.Pass
	case table.Refused:
		return l.refuse(s, c, wait, place.IsShared())
	}
	return l.acquireSlowly(s, c, outcome)
}

// undecided returns the decision on a call without a value.
func undecided(decision rule.Decision) (rule.Ticket, rule.Decision) {
	if decision == rule.Block {
		return rule.Ticket(rule.Forbidden), decision
	}
	return 0, decision
}

// take takes what a call takes, if it may pass now. It tells where that was counted, and of
// a call that is refused how long it takes until such a call passes, but for a penalty.
func (l *limiter) take(
	s subject, c rule.Call, from table.Source,
) (t *tables, place table.Place, wait time.Duration, outcome table.Outcome) {
	if l.isPenalised(s, c.Now) {
		wait, _ = l.retryAfter(c)
		return nil, 0, wait, table.Refused
	}
	if t = l.main.Load(); t == nil || s.isOwn {
		t = l.tablesOf(s, c.Now)
	}
	switch {
	case t.buckets != nil:
		place, wait, outcome = t.buckets.TakeOrWait(s.key, l.now[s.class], c.Now, c.Tokens, from)
	case t.windows != nil:
		limit := int64(l.limits[s.class])
		if place, outcome = t.windows.TakeFrom(s.key, l.terms, limit, c.Now, c.Tokens, from); outcome == table.Refused {
			wait = t.windows.RetryAfter(s.key, l.terms, limit, c.Now, c.Tokens)
		}
	default:
		limit := int64(l.limits[s.class])
		if place, outcome = l.takePlace(t, s, limit-l.elsewhere(s, c.Now), from, c.Now); limit == 0 {
			wait = rule.Never
		}
	}
	return t, place, wait, outcome
}

// takePlace takes a place of a call under way, if that makes no more than a limit.
func (l *limiter) takePlace(
	t *tables, s subject, limit int64, from table.Source, now clock.Instant,
) (table.Place, table.Outcome) {
	if l.rule.MaxAge == 0 {
		return t.concurrency.Acquire(s.key, l.version, limit, from)
	}
	place, outcome := t.concurrency.AcquireAged(s.key, l.version, limit, from, l.rule.MaxAge, now)
	l.tellExpired(t.concurrency, now)
	return place, outcome
}

// isPenalised says whether a value is refused outright.
func (l *limiter) isPenalised(s subject, now clock.Instant) bool {
	return l.penalties != nil && l.penalties.left(s.key, now) > 0
}

// pass notes that a call passes, and returns its ticket. What it is given fits in registers.
func (l *limiter) pass(t *tables, place table.Place, s subject, now clock.Instant, value rule.Attribute) rule.Ticket {
	if !l.state.isKept(now, l.keeps) { // most calls need neither this nor the next: that saves two calls
		l.state.keep(now, l.keeps)
	}
	if !l.state.hottest.leavesOut(now, s.key) {
		l.state.hottest.count(l.state.salt, now, s.key, value, true)
	}
	if l.rule.WarnAt > 0 && !place.IsShared() {
		l.noteUse(s, now, value)
	}
	return l.ticket(t, place, s)
}

// refuse notes that a call is refused, perhaps by counters that its value shares with
// others. It returns how long it takes until such a call passes, as a ticket.
func (l *limiter) refuse(s subject, c rule.Call, wait time.Duration, isShared bool) (rule.Ticket, rule.Decision) {
	if l.penalties != nil {
		if !isShared && l.penalties.left(s.key, c.Now) == 0 {
			l.penalties.refused(s.key, c.Now)
			l.state.keep(c.Now, l.keeps)
		}
		wait = max(wait, l.penalties.left(s.key, c.Now))
	}
	if !l.state.hottest.leavesOut(c.Now, s.key) {
		l.state.hottest.count(l.state.salt, c.Now, s.key, c.Attribute, false)
	}
	if l.rule.WarnAt > 0 && !isShared {
		l.noteUse(s, c.Now, c.Attribute)
	}
	return rule.RetryTicket(wait), rule.Block
}

// A ticket is the place of a call in a table, and says which table that is. Those of the
// main table, as long as its size has not changed, are as small as the place.
// If the table has grown once, they are one bit longer than the longest place, and guards carry
// them still.
//
// Once the program has settled a call, a ticket has the key and the class of the value in
// place of that: the value may have been forgotten when the next call is settled. Such
// tickets are too large for a guard to carry, which makes calls slower.
const (
	keyTicket   = 1 << 63
	ownTicket   = 1 << 62
	classShift  = 56
	classMask   = 1<<5 - 1
	numberShift = 48
	numberMask  = 1<<8 - 1
	placeMask   = 1<<numberShift - 1

	// Keys have space for what a ticket has beside them.
	ticketShift = 24
	keyMask     = ^uint64(0xFF << ticketShift)
)

func (l *limiter) ticket(t *tables, p table.Place, s subject) rule.Ticket {
	own := rule.Ticket(0)
	if s.isOwn {
		own = ownTicket
	}
	if l.state.settles.Load() && t.concurrency == nil {
		class := min(s.class, classMask) // of buckets, there are no more
		return keyTicket | own | rule.Ticket(class)<<classShift | ticketKey(s.key)
	}
	return rule.Ticket(p) | rule.Ticket(t.number&numberMask)<<numberShift | own
}

// ticketKey returns what a ticket has of a key.
func ticketKey(key uint64) rule.Ticket { return rule.Ticket(bits.RotateLeft64(key, -ticketShift-8)) }

// keyIn returns the key and the class of the value, of a ticket that has them.
func keyIn(ticket rule.Ticket) (key uint64, class int) {
	return bits.RotateLeft64(uint64(ticket)<<8>>8, ticketShift+8), int(ticket >> classShift & classMask)
}

// placeOf returns where a ticket says that a call was counted. A call that has waited
// while the size of the table was changed has no place any more.
func (l *limiter) placeOf(now clock.Instant, ticket rule.Ticket) (t *tables, place table.Place) {
	if ticket&ownTicket != 0 {
		t = l.ownTables(now)
	} else {
		t = l.mainTables(now)
	}
	switch {
	case ticket&keyTicket != 0:
		if key, _ := keyIn(ticket); t.buckets != nil {
			place = t.buckets.PlaceOf(key)
		}
	case uint64(ticket)>>numberShift&numberMask == t.number&numberMask:
		place = table.Place(ticket & placeMask)
	}
	return t, place
}

// GiveBack undoes an Acquire: another rule refused the call.
func (l *limiter) GiveBack(now clock.Instant, ticket rule.Ticket, tokens int32) {
	if ticket == 0 {
		return // the rule does not limit the call
	}
	if ticket&keyTicket != 0 {
		l.charge(now, now, ticket, -tokens)
		return
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

// charge adds tokens to what a value has used, or takes off some that were taken at an
// instant.
func (l *limiter) charge(now, taken clock.Instant, ticket rule.Ticket, tokens int32) {
	states := &l.state.main
	if ticket&ownTicket != 0 {
		states = &l.state.own
	}
	key, class := keyIn(ticket)
	if t := states.present(); t.buckets != nil { // the latest one
		t.buckets.Charge(key, class, now, tokens)
	} else {
		t.windows.Charge(key, now, taken, tokens)
	}
}

// settle adds tokens to what a call took, or gives some back if the number is negative.
func (l *limiter) settle(now, start clock.Instant, ticket rule.Ticket, tokens int32) {
	if ticket == 0 {
		return
	}
	if !l.state.settles.Load() {
		l.state.settles.Store(true)
	}
	if tokens > 0 {
		l.state.keep(now, addDuration(l.keeps, durationOf(float64(tokens)*l.slowest)))
	}
	if ticket&keyTicket != 0 {
		l.charge(now, start, ticket, tokens)
		return
	}
	if t, place := l.placeOf(now, ticket); t.buckets != nil {
		t.buckets.Settle(place, now, tokens)
	} else {
		t.windows.Settle(place, now, tokens)
	}
}

// Settle corrects what a call took.
func (l *limiter) Settle(now, start clock.Instant, ticket rule.Ticket, tokens int32) {
	l.settle(now, start, ticket, tokens)
}

// Settle does nothing: a call takes one place, whatever its tokens.
func (*concurrencyLimiter) Settle(_, _ clock.Instant, _ rule.Ticket, _ int32) {}

// MaxAge returns after how long a place counts as given back.
func (l *concurrencyLimiter) MaxAge() time.Duration { return l.rule.MaxAge }

// Done ends a call.
func (l *concurrencyLimiter) Done(ticket rule.Ticket, e rule.Exit) { l.GiveBack(e.Now, ticket, 1) }

// RetryAfter returns how long it takes until such a call passes: the rest of a penalty, or
// until the limit lets it pass, whichever is longer. When calls end, and a place becomes
// free, is unknown.
func (l *limiter) RetryAfter(c rule.Call) time.Duration { return max(l.retryAfter(c)) }

// retryAfter returns how long it takes until the limit lets such a call pass without
// waiting, and the rest of a penalty.
func (l *limiter) retryAfter(c rule.Call) (wait, penalty time.Duration) {
	s, decision := l.subjectOf(c.Attribute)
	switch decision {
	case rule.Pass:
		return 0, 0
	case rule.Block:
		return rule.Forbidden, 0
	}
	switch t, limit := l.tablesOf(s, c.Now), l.limits[s.class]; {
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
	if !s.main.await(l.compiled, l.rule.firstSize()) {
		l.mainTables(now).activate(l.compiled, now)
	}
	if !s.own.await(l.compiled, l.ownSize()) {
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
		float64(s.Occupied), float64(l.rule.MaxValues), float64(s.Forgotten), float64(s.WithoutSlot), 0, 0, float64(s.Bytes),
	}
	if l.rule.MaxAge > 0 {
		oldest, expired := l.aged(now)
		gauges = append(gauges, oldest, expired)
	}
	if l.penalties != nil {
		gauges[4], gauges[5] = float64(l.penalties.running(now)), float64(l.penalties.begun.Load())
	}
	return rule.Status{Gauges: gauges, Values: l.state.hottest.of(l.state.salt, now, l.rule.Mask == rule.MaskHash)}
}

// gaugeBytes is the index of the last gauge of most rules.
const gaugeBytes = 6

// gauges describes what Status returns, in the same order.
func gauges() []rule.Gauge {
	return []rule.Gauge{
		{Name: "values", Help: "Values whose state is kept, on all resources of the rule together."},
		{Name: "max_values", Help: "How many values the rule keeps the state of at the same time."},
		{Name: "forgotten", Help: "How often the state of a value was forgotten because it was as new, since the rule began.", Counter: true},
		{Name: "without_slot", Help: "Decisions by counters that values share because the table was full, since the rule began.", Counter: true},
		{Name: "penalised", Help: "Values that are refused outright now."},
		{Name: "penalties", Help: "Penalties since the rule began.", Counter: true},
		{Name: "table_bytes", Help: "Memory of the table of values: it grows when values find no place, up to max_values."},
		{Name: "oldest_seconds", Help: "How long the oldest call under way has had its place, in seconds, at most; of rules with maxAge."},
		{Name: "expired", Help: "Places that were given back after maxAge although their calls had not ended; of rules with maxAge.", Counter: true},
	}
}
