package isolation

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule. It never changes; all versions share a pool.
type limiter struct {
	pool    *pool
	rule    Rule
	version uint64

	// What Acquire compares the pool's word with.
	open   uint64 // the word while this version is in force, no flag is set and no call is under way
	limit  uint64
	atFull rule.Decision // for a call that finds no place: Wait if it may wait, else Block
	retry  rule.Ticket   // of a call that finds no place
	warn   func(message string)

	weights tenants.Weights // of tenants, see Rule.FairBy
	isFair  bool
	learns  bool // which tenants are known
}

var (
	_ rule.Queue     = (*limiter)(nil)
	_ rule.Finisher  = (*limiter)(nil)
	_ rule.Activator = (*limiter)(nil)
	_ rule.Retirer   = (*limiter)(nil)

	_ optional.LateReader = (*limiter)(nil)
)

func compile(r *Rule, env rule.Env, p *pool) *limiter {
	l := &limiter{
		pool: p, rule: *r, version: env.Version,
		open: env.Version << versionShift, limit: uint64(r.Limit), atFull: rule.Block, retry: rule.RetryUnknown,
		warn: env.Warn, isFair: r.isFair(), learns: r.Newcomers == rule.NewcomersHalf, weights: tenants.CompileWeights(r.tenants()),
	}
	if p.lease != nil {
		l.limit = top
	}
	if r.Limit == 0 {
		l.retry = rule.RetryTicket(rule.Never)
	}
	if r.Limit > 0 && r.MaxWait > 0 {
		l.atFull = rule.Wait
	}
	return l
}

// tell logs that places were given back because of their age.
func (l *limiter) tell(places uint64) {
	if l.warn == nil {
		return
	}
	held := "1 place was held for longer than maxAge, which is %v, and counts"
	if places > 1 {
		held = fmt.Sprint(places) + " places were held for longer than maxAge, which is %v, and count"
	}
	l.warn(fmt.Sprintf(held+" as given back: find what does not end its call, or raise maxAge", l.rule.MaxAge))
}

func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	p := &pool{hasher: valuehash.New(env.Seed)}
	if isOfFleet(r) && env.Fleet != nil {
		p.lease = newLease(r, &env, p)
	}
	l := compile(r, env, p)
	l.pool.init(l, env.Now)
	if p.lease != nil {
		p.lease.Start(env.Now)
	}
	return l
}

// adopt returns a newer version with the pool of the present one.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	former, ok := present.(*limiter)
	if !ok || (former.pool.lease != nil) != (isOfFleet(r) && env.Fleet != nil) || former.pool.lease != nil && !sameKey(&former.rule, r) {
		return nil
	}
	return compile(r, env, former.pool)
}

// Acquire takes a place if one is free and no call waits. Passing is one
// compare-and-swap; refusing is one load.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	p := l.pool
	for {
		word := p.word.Load()
		places := word & placesMask
		switch {
		case word&^(placesMask|groupMask) != l.open || c.Now >= clock.Instant(p.due.Load()):
			return l.acquireSlow(c, word&^(placesMask|groupMask))
		case places >= l.limit:
			return l.full(c.Now)
		}
		ticket, away := p.ages.ticketOf(groupOf(word)), p.away.Load()
		if p.word.CompareAndSwap(word, word+1) {
			p.raiseHighest(places + 1 - away)
			if l.learns && c.Attribute.IsSet() {
				p.acquaintances.Meet(p.hasher.Hash(c.Attribute), c.Now)
			}
			return ticket, rule.Pass
		}
	}
}

// acquireSlow is Acquire when a flag of the word is set, another version of the rule is in
// force, or the time asks for something.
func (l *limiter) acquireSlow(c rule.Call, state uint64) (rule.Ticket, rule.Decision) {
	level := c.Priority().Level()
	switch {
	case state&^refusedMask != l.open|waiting, c.Now >= clock.Instant(l.pool.due.Load()):
		return l.acquireLocked(c.Now, level)
	case uint64(level) < state&refusedMask>>refusedShift:
		return 0, rule.Block
	case l.isFair && l.refusesTenant(c, level):
		return 0, rule.Block
	}
	return l.full(c.Now) // no place is free while calls wait
}

// refusesTenant says whether a call is refused because the queue is full for its tenant, as far as that is
// known without the mutex.
func (l *limiter) refusesTenant(c rule.Call, level int) bool {
	p := l.pool
	if !p.full.refusesAny() {
		return false
	}
	tenant := p.hasher.Hash(c.Attribute)
	if p.full.refuses(tenant, level) {
		return true
	}
	if !l.learns || !p.full.refusesNewcomers(level) {
		return false
	}
	_, hasWeight := l.weights.Of(c.Attribute)
	return !l.knows(tenant, c.Attribute, hasWeight, c.Now)
}

// AcquireUnread is Acquire for a call of which is not known whose it is. That matters only if the
// queue is full, perhaps for some tenants, and to learn now and then which tenants there are.
func (l *limiter) AcquireUnread(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.learns && l.pool.acquaintances.LooksAt(c.Now) {
		return 0, optional.NeedsAttribute
	}
	ticket, decision := l.Acquire(c)
	switch {
	case !l.isFair:
	case decision == rule.Block, decision == rule.Wait && l.pool.full.refusesAny():
		return 0, optional.NeedsAttribute
	}
	return ticket, decision
}

func (l *limiter) acquireLocked(now clock.Instant, level int) (rule.Ticket, rule.Decision) {
	p := l.pool
	p.lock(now)
	defer p.unlock()
	if !p.activate(l, now) {
		return 0, rule.Stale
	}
	if ticket, ok := p.takeIfFree(); ok {
		return ticket, rule.Pass
	}
	if level < p.refusedLevels() {
		return 0, rule.Block
	}
	return l.full(now)
}

// full is the answer to a call that finds no place.
func (l *limiter) full(now clock.Instant) (rule.Ticket, rule.Decision) {
	if l.pool.lease != nil && l.atFull == rule.Block {
		l.pool.miss(now)
	}
	return l.retry, l.atFull
}

// GiveBack frees the place.
func (l *limiter) GiveBack(now clock.Instant, t rule.Ticket, _ int32) { l.pool.release(now, 0, t) }

// MaxAge returns after how long a place counts as given back.
func (l *limiter) MaxAge() time.Duration { return l.rule.MaxAge }

// Done frees the place, unless that was given back because of its age.
func (l *limiter) Done(t rule.Ticket, exit rule.Exit) { l.pool.release(exit.Now, exit.Start, t) }

// RetryAfter is unknown unless the limit is 0: nobody knows when calls end.
func (l *limiter) RetryAfter(rule.Call) time.Duration {
	return l.retry.RetryTime()
}

// Join has a call wait for a place.
func (l *limiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	p := l.pool
	var of tenant
	if l.isFair {
		of = l.tenantOf(c.Attribute, c.Now)
	}
	p.lock(c.Now)
	defer p.unlock()
	if !p.activate(l, c.Now) {
		return nil, 0, rule.Stale
	}
	if ticket, ok := p.takeIfFree(); ok {
		return nil, ticket, rule.Pass
	}
	if l.atFull != rule.Wait || patience.Since.Add(l.rule.MaxWait) <= c.Now || patience.Until <= c.Now {
		return nil, 0, rule.Block
	}
	level := c.Priority().Level()
	if !p.makeSpace(level, of) {
		return nil, 0, rule.Block
	}
	wasFlooded := p.queue.IsFlooded(level)
	w := &waiter{pool: p, since: patience.Since, tenant: of.value}
	w.Begin(w, patience.Wake)
	if l.isFair {
		p.queue.PushOf(w, &w.node, level, of.Tenant)
		if p.queue.IsFlooded(level) != wasFlooded {
			p.full.reset()
		}
	} else {
		p.queue.Push(w, &w.node, level)
	}
	p.wakeLease(c.Now)
	return w, 0, rule.Wait
}

// Activate puts this version in force, unless a newer one is.
func (l *limiter) Activate(now clock.Instant) {
	if l.activate(now) {
		l.pool.resumeLease(l, now)
	}
}

func (l *limiter) activate(now clock.Instant) bool {
	l.pool.lock(now)
	defer l.pool.unlock()
	return l.pool.activate(l, now)
}

// Retire ends all waits, for the rule is gone. Calls under way keep their places
// until they end.
func (l *limiter) Retire(now clock.Instant) {
	if l.end(now) && l.pool.lease != nil {
		l.pool.lease.Release(now)
	}
}

// end ends all waits if this version is in force.
func (l *limiter) end(now clock.Instant) bool {
	l.pool.lock(now)
	defer l.pool.unlock()
	if !l.pool.activate(l, now) {
		return false
	}
	l.pool.retired = true
	l.pool.releaseAll()
	return true
}

// Status returns the gauges of all versions of the rule together, and the limit in force.
func (l *limiter) Status(now clock.Instant) rule.Status {
	p := l.pool
	p.lock(now)
	defer p.unlock()
	s := rule.Status{Gauges: []float64{
		float64(p.places), float64(p.queue.Len()), float64(max(p.highest.Load(), p.highestLooked, p.highestBefore)), float64(p.current.rule.Limit),
		p.ages.oldest(now, p.places).Seconds(), float64(p.ages.given),
	}}
	if p.current.isFair || p.queue.Tenants() > 0 {
		p.describeTenants(&s)
	}
	if p.lease != nil {
		p.describeLease(&s)
	}
	return s
}

// Idle says whether no call is under way or waits.
func (l *limiter) Idle(now clock.Instant) bool {
	l.pool.lock(now)
	defer l.pool.unlock()
	return l.pool.places == 0 && l.pool.queue.Len() == 0
}
