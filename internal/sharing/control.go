package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/outage"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// The constants of the control were found by simulation, see the tests of goals.
const (
	// tick is how often budgets with demand are looked at, at most. What is due within one
	// goes in one batch.
	tick = 10 * time.Millisecond

	// requestsPerSecond is how many requests a budget makes in the long run, and
	// requestBurst how many it may make at once.
	requestsPerSecond = 11.5
	requestBurst      = 3

	// period is the time for which a request leases tokens.
	period = 90 * time.Millisecond

	// maxPending is how many requests of a budget may be under way.
	maxPending = 4

	// minDebtTime is how long calls may pass on debt, at least.
	minDebtTime = 10 * time.Millisecond

	minLife = 200 * time.Millisecond
	maxLife = time.Second
)

// control is what the member knows of a budget, and decides about it.
type control struct {
	terms      fleet.Terms
	mode       fleet.Mode
	onOutage   fleet.OnOutage
	place      int           // in the list of all budgets
	due        clock.Instant // when to look at it
	queueIndex int           // its place there, -1 if it is not in it

	held    leases     // whose tokens are in the word
	later   leases     // whose tokens may be used later
	pending []*pending // requests under way
	back    returns
	last    origin // of the tokens held last

	debt     int64 // tokens in the word that were not leased, for calls that cannot wait
	owed     int64 // tokens that were used of those, and for which no request is under way
	owedSent int64 // those for which one is

	owedBefore []int64 // of owed, in the buckets before the present one of a window, the latest first

	looked      clock.Instant // when used tokens were last counted
	lastPass    clock.Instant
	lastCall    clock.Instant
	quiet       bool          // when it was looked at last
	busyFrom    clock.Instant // when it was not quiet any more
	demand      usage.Average
	passed      usage.Average
	granted     usage.Average
	passes      usage.PassLog // of windows
	portion     usage.Portion
	crowd       usage.Crowd
	steady      float64       // tokens per second that passed when the store last answered
	steadyAt    clock.Instant // when that was
	passedTotal int64
	large       int64         // tokens of the largest call that was refused of late
	largeAt     clock.Instant // when it was

	isFull       bool          // the last wants were granted in full
	fullWants    int           // how many
	jitter       time.Duration // by which tokens of the next bucket are asked for earlier
	spareRate    float64       // tokens per second that a bucket is thought to have for this instance, see explore
	retryAt      clock.Instant // before which the store grants nothing
	shortAt      clock.Instant // when the store granted less than was asked for
	seen         string        // the last [fleet.Reply.State]
	tells        bool          // the store is to learn from it
	told         usage.WindowUse
	left         float64       // of a window, tokens that it had left when the store last answered
	bucketTokens float64       // of a window, tokens that a bucket has if the others are like the last ones
	free         float64       // how much more that is than the last ones had
	isKnown      bool          // whether these are known
	requests     float64       // that may be made now
	asked        clock.Instant // when tokens were asked for last
	bucketEnd    clock.Instant // of a window, of the bucket to which tokens were last granted

	lost   int           // requests without an answer, of those sent since heard
	heard  clock.Instant // when the last request was sent that has an answer
	outage outage.Outage
}

// expected is what the word would hold if nothing had been used since it was counted.
func (b *Budget) expected() int64 { return b.held.tokens() - b.owed - b.owedSent + b.debt }

// count counts what was used and refused since the last time.
func (b *Budget) count(now clock.Instant) {
	refused, largest := b.refused.Swap(0), b.largest.Swap(0)
	if largest > 0 && (largest >= b.large || now.Sub(b.largeAt) > 10*time.Second) {
		b.large, b.largeAt = min(largest, b.most.Load()), now
	}
	used := b.expected() - packed.Tokens(b.packed.Load()).Tokens()
	elapsed := now.Sub(b.looked)
	b.passes.Advance(now)
	b.outage.Advance(now, elapsed, &b.passes)
	b.use(used)
	b.passes.Add(used)
	b.demand.Add(max(0, used)+refused, elapsed, b.demandMemory())
	b.group.Add(now, max(0, used)+refused, used, 0)
	b.passed.Add(used, elapsed, b.rateMemory())
	b.granted.Add(0, elapsed, b.rateMemory())
	b.requests = min(requestBurst, b.requests+max(0, elapsed).Seconds()*b.requestRate())
	b.looked = max(b.looked, now)
	if used > 0 {
		b.lastPass = now
	}
	b.passedTotal += used
	if used > 0 || refused > 0 {
		b.lastCall = now
		if b.quiet {
			b.quiet, b.busyFrom = false, now
		}
	}
}

// use notes that tokens were used or, if there are less than none, given back.
func (b *Budget) use(tokens int64) {
	if tokens >= 0 {
		over := b.held.use(tokens)
		b.owed += over
		b.outage.Use(over)
		return
	}
	tokens = -tokens
	paid := min(tokens, b.owed)
	b.oweLess(paid)
	b.outage.Use(-paid)
	tokens -= paid
	if last := len(b.held) - 1; last >= 0 {
		b.held[last].tokens += tokens
	} else if tokens > 0 {
		b.handBack(b.last, b.withdraw(tokens))
	}
}

// look brings the budget up to now, and returns a request if one is to be made.
func (b *Budget) look(now clock.Instant) (request fleet.Request, p *pending) {
	b.joinOutage(now)
	b.count(now)
	for i := range b.later {
		if l := &b.later[i]; l.from <= now {
			b.beginBucket(l.origin.bucket, l.from)
		}
	}
	b.retire(now)
	arrived := b.start(now)
	request, p = b.plan(now)
	arrived += b.allow(now)
	b.schedule(now)
	b.quiet = b.isQuiet()
	b.write(arrived, b.end(now), b.quiet)
	if b.quiet && (b.refused.Load() > 0 || packed.Tokens(b.packed.Load()).Tokens() != b.expected()) {
		b.wake(now) // a call came before the word was quiet
	}
	b.publish(now, arrived > 0)
	return request, p
}

// end is up to when the tokens in the word may be used without another look.
func (b *Budget) end(now clock.Instant) clock.Instant {
	return min(b.held.firstEnd(), now.Add(packed.Forever))
}

// retire hands back what is left of leases that end, and what is more than needed. Leases of
// a bucket are handed back a little before they end.
func (b *Budget) retire(now clock.Instant) {
	by := now
	if b.mode == fleet.ModeLease {
		by = now.Add(tick)
	}
	for {
		ended, ok := b.held.takeEnding(by)
		if !ok {
			break
		}
		b.handBack(ended.origin, b.withdraw(ended.tokens))
	}
	for spare := b.held.tokens() - b.spare(now); spare > 0; {
		last := len(b.held) - 1
		part := b.withdraw(min(spare, b.held[last].tokens))
		b.handBack(b.held[last].origin, part)
		if b.held[last].tokens -= part; b.held[last].tokens > 0 {
			break
		}
		b.held = b.held[:last]
		spare -= part
	}
}

// handBack notes that tokens are to be handed back.
func (b *Budget) handBack(o origin, tokens int64) {
	if tokens <= 0 || o.until <= b.looked {
		return
	}
	b.granted = max(0, b.granted-usage.Average(float64(tokens)/b.rateMemory().Seconds()))
	b.group.Add(b.looked, 0, 0, -tokens)
	b.back.add(o, tokens)
}

// start holds the leases whose time has come, and returns their tokens.
func (b *Budget) start(now clock.Instant) (tokens int64) {
	for {
		started, ok := b.later.takeStarted(now)
		if !ok {
			return tokens
		}
		tokens += b.hold(started)
	}
}

// hold adds a lease that may be used, and returns its tokens, which the caller writes into
// the word.
func (b *Budget) hold(l lease) int64 {
	b.last = l.origin
	b.held.add(l)
	return l.tokens
}

// beginBucket has calls give nothing back of a window that they took before an instant, at which
// tokens of another bucket may be used. It is called when all that was used is counted, and before
// these tokens are held. Calls that are just giving some back have either done so, and it counts
// as of the bucket before, or look again, because the word is another one.
func (b *Budget) beginBucket(bucket int64, from clock.Instant) {
	if b.mode != fleet.ModeWindow || bucket == b.last.bucket {
		return
	}
	b.since.Store(int64(from))
	b.write(0, from.Add(-packed.Forever/2), false) // no other word ends then
	b.count(b.looked)
}

// schedule sets when the budget is to be looked at again.
func (b *Budget) schedule(now clock.Instant) {
	if b.isQuiet() {
		b.member.queue.set(b, b.quietUntil(now))
		return
	}
	due := min(b.later.firstStart(), nextTick(now.Add(b.interval(now))))
	if b.outage.Window != nil {
		due = min(due, b.passes.Next())
	}
	if end := b.held.firstEnd(); b.mode == fleet.ModeLease {
		due = min(due, end.Add(-tick))
	} else {
		due = min(due, end)
	}
	if prefetch := b.prefetchAt(now); prefetch > now {
		due = min(due, prefetch)
	}
	b.member.queue.set(b, max(now+1, due))
}

// quietUntil returns when a quiet budget is to be looked at although no call comes: when
// one may pass on debt.
func (b *Budget) quietUntil(now clock.Instant) clock.Instant {
	if b.debt > b.owed || b.released.Load() || b.outage.Active && b.outage.Passes(&b.terms) == 0 {
		return never
	}
	return max(now.Add(time.Second), b.lastPass.Add(b.idleTime()), b.retryAt)
}

// interval is how long the budget need not be looked at: until half of what is more than
// needed may be used.
func (b *Budget) interval(now clock.Instant) time.Duration {
	const longest = 5 * tick
	switch {
	case b.outage.Active || b.owed > 0 || len(b.back) > 0:
		return tick
	case b.retryAt > now && len(b.held) == 0:
		return min(max(tick, b.retryAt.Sub(now)), longest)
	}
	spare := float64(b.held.tokens()) - b.need(b.member.lead())
	return min(max(tick, usage.Seconds(spare/(2*max(b.demanded(), 1e-3)))), longest)
}

// isQuiet says whether nothing is leased, owed or asked for: the next call wakes the member.
func (b *Budget) isQuiet() bool {
	switch {
	case len(b.held)+len(b.later)+len(b.pending)+len(b.back) > 0 || b.owedSent > 0:
		return false
	case b.outage.Active:
		return b.released.Load() || b.looked.Sub(b.lastCall) > time.Second
	default:
		return b.owed == 0 && (b.released.Load() || b.isRare())
	}
}

// publish tells calls what they read of the control.
func (b *Budget) publish(now clock.Instant, arrived bool) {
	b.nextAt.Store(int64(b.next(now)))
	b.newAt.Store(int64(b.newFrom()))
	rate := b.granted.PerSecond()
	switch {
	case b.outage.Active:
		rate = min(b.outage.Passes(&b.terms), outage.UnlimitedRate)
	case b.isFull || rate == 0:
		rate = max(rate, b.even())
	}
	b.rate.Store(math.Float64bits(rate))
	if f := b.notify.Load(); arrived && f != nil {
		b.member.calls = append(b.member.calls, *f)
	}
}

// next returns when tokens may arrive: 0 if that is not known.
func (b *Budget) next(now clock.Instant) clock.Instant {
	at := b.later.firstStart()
	switch {
	case b.outage.Active:
		return b.outage.Next(now, &b.passes)
	case at < never:
		return at
	case b.retryAt > now:
		return b.retryAt
	case b.isQuiet():
		return 0
	default:
		return max(now, b.due).Add(b.member.roundTrip())
	}
}
