package flow

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// What tests of several queues and of full windows use.
type (
	LimiterKind = limiterKind
	Place       struct{ queuePlace }
)

const (
	WindowLimiter   = windowLimiter
	ThrottleLimiter = throttleLimiter
	BucketLimiter   = bucketLimiter
)

func (r Rule) LimiterKind() LimiterKind { return r.limiterKind() }

type Ask struct {
	Queue *Queue
	Terms *Terms
}

func asksOf(asks []Ask) []ask {
	of := make([]ask, len(asks))
	for i, a := range asks {
		of[i] = ask{a.Queue, a.Terms}
	}
	return of
}

func TakeAll(asks []Ask, now clock.Instant, n int32, patience time.Duration, tickets []Ticket) (int, Ticket, Decision) {
	return takeAll(asksOf(asks), now, n, patience, tickets)
}

func ExpectAll(asks []Ask, now clock.Instant, n int32, patience time.Duration) (int, Ticket, Decision) {
	return expectAll(asksOf(asks), now, n, patience)
}

func PassAll(asks []Ask, places []Place, notBefore, now clock.Instant, tickets []Ticket) Decision {
	of := make([]queuePlace, len(places))
	for i, p := range places {
		of[i] = p.queuePlace
	}
	return passAll(asksOf(asks), of, notBefore, now, tickets)
}

func (q *Queue) Hold(
	t *Terms, now, since clock.Instant, n int32, patience time.Duration, w *Waiter,
) (Place, Ticket, Decision) {
	p, ticket, decision := q.hold(t, now, since, n, patience, w)
	return Place{p}, ticket, decision
}

func (q *Queue) Expect(t *Terms, now clock.Instant, n int32, patience time.Duration) (Ticket, Decision) {
	return q.expect(t, now, n, patience)
}

func (p Place) Ready(now clock.Instant) (time.Duration, Decision) { return p.ready(now) }

func (p Place) Expect(turn clock.Instant) { p.expect(turn) }

func (p Place) Leave(now clock.Instant) { p.leave(now) }

func (w *Window) Begin() { w.begin() }

func (w *Window) End() { w.end() }

func (w *Window) ReallyFull(t *Terms, now clock.Instant, n int32) bool {
	return w.reallyFull(t, now, n)
}

func (w *Window) FullUntil(t *Terms, now clock.Instant, n int32) clock.Instant {
	return w.fullUntil(t, now, n)
}

// CheckLine returns what is wrong with the line of those who wait, of whom
// there should be so many.
func (q *Queue) CheckLine(want int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var count int
	var tokens int64
	var last *Waiter
	for w := q.line.head; w != nil; w = w.next {
		switch {
		case w.prev != last:
			return fmt.Errorf("waiter %d: not linked to the one before", count)
		case w.state != inQueue:
			return fmt.Errorf("waiter %d: in the line, but in state %d", count, w.state)
		case last != nil:
			tokens += int64(w.tokens)
		}
		last = w
		count++
	}
	if s, ok := q.pace.(*spacing); ok && count > 0 && q.line.head.ticket.turn <= s.last.at {
		return fmt.Errorf("the head's turn is not after the last one")
	}
	switch {
	case q.line.tail != last && count > 0:
		return fmt.Errorf("the tail is not the last of %d", count)
	case q.line.behind != tokens:
		return fmt.Errorf("%d tokens are behind the head, counted as %d", tokens, q.line.behind)
	case count != want:
		return fmt.Errorf("%d wait, not %d", count, want)
	}
	return nil
}

// Tokens returns how many tokens the ticket took.
func (t Ticket) Tokens() int32 { return t.tokens }

// Logged returns how many entries the window keeps of what has passed, for other
// shapes of its rule.
func (w *Window) Logged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log == nil {
		return 0
	}
	return cap(w.log.entries)
}
