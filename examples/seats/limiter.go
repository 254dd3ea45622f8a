package seats

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule on one resource, or on all that share the rule.
type limiter struct {
	rule    *Rule
	version uint64
	room    *room // of all versions
}

var (
	_ rule.Queue     = (*limiter)(nil)
	_ rule.Finisher  = (*limiter)(nil)
	_ rule.Activator = (*limiter)(nil)
	_ rule.Retirer   = (*limiter)(nil)
)

func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	l := &limiter{rule: r, version: env.Version, room: new(room)}
	l.room.inForce = l
	return l
}

// adopt returns a newer version, which has the room of the present one.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	return &limiter{rule: r, version: env.Version, room: present.(*limiter).room}
}

// Acquire takes a seat, unless others wait for one.
func (l *limiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	switch {
	case !l.room.activate(l):
		return 0, rule.Stale
	case l.room.sit():
		return 0, rule.Pass
	case l.rule.MaxWait == 0 || l.isFull():
		return rule.RetryUnknown, rule.Block
	}
	return 0, rule.Wait
}

func (l *limiter) isFull() bool { return len(l.room.queue) >= l.rule.MaxQueue }

// Join has a call wait to which Acquire said so. Meanwhile all may have changed.
func (l *limiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	until := min(patience.Until, patience.Since.Add(l.rule.MaxWait))
	switch {
	case !l.room.activate(l):
		return nil, 0, rule.Stale
	case l.room.sit():
		return nil, 0, rule.Pass
	case until <= c.Now || l.isFull():
		return nil, rule.RetryUnknown, rule.Block
	}
	w := &waiter{l.room, until, patience.Wake, rule.Wait}
	l.room.queue = append(l.room.queue, w)
	return w, 0, rule.Wait
}

// GiveBack frees the seat of a call that another rule has refused.
func (l *limiter) GiveBack(clock.Instant, rule.Ticket, int32) { l.rise() }

// Done frees the seat of a call that has ended.
func (l *limiter) Done(rule.Ticket, rule.Exit) { l.rise() }

func (l *limiter) rise() {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.room.rise()
}

// RetryAfter returns 0: nobody knows when calls end.
func (l *limiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Activate brings the version in force before a call asks it.
func (l *limiter) Activate(clock.Instant) {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	l.room.activate(l)
}

// Retire ends all waits. Calls under way keep their seats until they end.
func (l *limiter) Retire(clock.Instant) {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	if l.room.activate(l) {
		l.room.gone = true
		l.room.dismiss()
	}
}

// Status returns how many seats are taken, and how many calls wait.
func (l *limiter) Status(clock.Instant) rule.Status {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	return rule.Status{Gauges: []float64{float64(l.room.taken), float64(len(l.room.queue))}}
}

// Idle says whether no call is under way or waits.
func (l *limiter) Idle(clock.Instant) bool {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	return l.room.taken == 0 && len(l.room.queue) == 0
}
