package lease

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/unordered"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Budgets are those of one instance.
type Budgets struct {
	*exchange.Exchange

	woken atomic.Pointer[Budget] // those that calls have woken since the last step

	// What follows is guarded by Mu of the exchange.
	all   []*Budget
	queue dueQueue
}

// New returns a budget of a limit, in [fleet.ModeLease] or [fleet.ModeWindow], which counts in the tally of a
// group if that is not nil. Release ends it.
func (set *Budgets) New(g *usage.Tally, terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Budget {
	b := &Budget{set: set, group: g, control: control{
		terms: terms, mode: mode, onOutage: onOutage,
		queueIndex: -1, due: exchange.Never, looked: now, lastPass: now.Add(-longAgo), lastCall: now, requests: requestBurst,
		isFull: g == nil, // values of which nothing is known pass no more than one call on debt
	}}
	if mode == fleet.ModeLease {
		b.last.until = exchange.Never
	}
	if mode == fleet.ModeWindow {
		b.passes = usage.NewPassLog(terms.Window, terms.Buckets, now)
	}
	b.setMost()
	b.packed.Store(uint64(packed.Pack(now.Add(packed.Forever), true, 0)))
	set.Mu.Lock()
	defer set.Unlock(now)
	b.place = len(set.all)
	set.all = append(set.all, b)
	set.Join(now)
	switch {
	case !set.CanCount():
		b.refusedBy(now, fmt.Errorf("%w: mode %s needs a store that counts", fleet.ErrUnsupported, mode))
		b.outage.AskAt = exchange.Never
	case set.IsOut():
		b.beginOutage(now, nil)
	}
	b.look(now)
	return b
}

// longAgo is longer ago than anything that matters.
const longAgo = 10 * 365 * 24 * time.Hour

// removeBudget forgets a budget of which nothing is left.
func (set *Budgets) removeBudget(b *Budget) {
	if b.place < 0 {
		return
	}
	if b.outage.Err != nil {
		set.NoteAccepted()
		b.group.Accepted()
	}
	set.queue.set(b, exchange.Never)
	unordered.Remove(&set.all, b.place).place = b.place
	b.place = -1
	set.Left()
}

// wakeUp has the next step look at a budget that was quiet.
func (set *Budgets) wakeUp(now clock.Instant, b *Budget) {
	for {
		b.nextWoken = set.woken.Load()
		if set.woken.CompareAndSwap(b.nextWoken, b) {
			break
		}
	}
	set.Hasten(exchange.NextTick(now))
}

// Woken returns when to look at budgets that calls have woken since the last step.
func (set *Budgets) Woken(now clock.Instant) clock.Instant {
	if set.woken.Load() == nil {
		return exchange.Never
	}
	return exchange.NextTick(now)
}

// Next returns when the first budget is to be looked at.
func (set *Budgets) Next() clock.Instant { return set.queue.due() }

// takeWoken has all budgets looked at that calls have woken.
func (set *Budgets) takeWoken(now clock.Instant) {
	for b := set.woken.Swap(nil); b != nil; {
		next := b.nextWoken
		b.nextWoken = nil
		b.isWoken.Store(false)
		if b.place >= 0 {
			set.queue.set(b, now)
		}
		b = next
	}
}

// maxLooks is how many budgets that are of no group are looked at in one step: about as many
// as in a millisecond, so that answers and calls do not wait for long.
const maxLooks = 1000

// maxGroupLooks is how many budgets of groups are looked at in one step, so that those
// who wait for the mutex do not wait for long.
const maxGroupLooks = 256

// Step looks at the budgets that are due, those first that have been for longest. If there
// are too many, the next step looks at the others.
func (set *Budgets) Step(now clock.Instant) {
	set.takeWoken(now)
	for looks := 0; looks < maxLooks && set.queue.budgets.due() <= now; looks++ {
		set.lookAt(set.queue.budgets[0], now)
	}
	for looks := 0; looks < maxGroupLooks && set.queue.groups.due() <= now; looks++ {
		set.lookAt(set.queue.groups[0], now)
	}
}

func (set *Budgets) lookAt(b *Budget, now clock.Instant) {
	if request, p := b.look(now); p != nil {
		set.Request(now, request, p, b.group != nil)
	}
	if b.released.Load() && b.isQuiet() {
		set.removeBudget(b)
	}
}

// BeginOutages has all budgets decide by themselves. Those that are not called do it when they
// are, as far as that makes no difference: there may be very many.
func (set *Budgets) BeginOutages(now clock.Instant) {
	for _, b := range set.all {
		if b.outage.Err == nil && (!set.Running() || !b.isAsleep()) {
			b.beginOutage(now, nil)
		}
	}
}

// BackIsUp ends that: the backend answers again.
func (set *Budgets) BackIsUp(now clock.Instant) {
	for _, b := range set.all {
		if b.outage.Err == nil {
			b.backIsUp(now)
		}
	}
}

// Probe calls ask with limits that the store answers.
func (set *Budgets) Probe(ask func(fleet.Operation, fleet.Terms)) {
	for _, b := range set.all[:min(len(set.all), exchange.MaxProbed)] {
		if b.most.Load() > 0 { // or a store may answer without its server
			ask(b.operation(), b.terms)
		}
	}
}

// HandBackAll requests that all that is leased is taken back, and pays what is owed. It waits
// for no answer: the instance ends.
func (set *Budgets) HandBackAll(now clock.Instant) {
	for _, b := range set.all {
		b.handBackAll(now)
	}
}

func (b *Budget) handBackAll(now clock.Instant) {
	b.count(now)
	b.drop(now)
	if b.outage.Active {
		return
	}
	for b.owed > 0 || len(b.back) > 0 {
		request, p := b.pay(now, 0)
		b.set.Request(now, request, p, b.group != nil)
		b.owedSent -= p.owed
		b.write(p.owed, b.end(now), false)
		b.remove(p)
	}
}

// Stop looks at all budgets for the last time before the instance ends.
func (set *Budgets) Stop(now clock.Instant) {
	for _, b := range slices.Clone(set.all) {
		if b.released.Load() {
			set.removeBudget(b)
		} else {
			b.look(now)
		}
	}
}

// Uses returns what is used of the limits of no group that calls ask for.
func (set *Budgets) Uses(now clock.Instant) (uses []fleet.Use) {
	for _, b := range set.queue.budgets {
		uses = append(uses, b.usage(now))
	}
	return uses
}

// Status tells how the limits of no group are.
func (set *Budgets) Status(now clock.Instant) (all []fleet.LimitStatus) {
	for _, b := range set.all {
		if b.group == nil {
			all = append(all, b.status(now))
		}
	}
	return all
}
