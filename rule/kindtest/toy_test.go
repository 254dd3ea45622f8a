package kindtest

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// toyRule lets so many calls be under way for each user, and others wait.
type toyRule struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool

	Limit   int
	MaxWait time.Duration
}

// A flaw is a mistake that a kind could have; "" is none.
type flaw string

func toyKind(of flaw) *rule.Type[toyRule] {
	common := func(r *toyRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	shown := []string{"resource", "limit", "maxWait"}
	if of == "an example lacks a field" {
		shown = shown[:2]
	}
	spec := rule.Spec[toyRule]{
		Kind: "toy", Phase: rule.PhaseValue, Reason: rule.Overloaded, Common: common,
		Fields: []rule.Field[toyRule]{
			rule.FieldOf("limit", func(r *toyRule) *int { return &r.Limit }).
				Required("is missing: write how many calls").Says("calls under way"),
			rule.FieldOf("maxWait", func(r *toyRule) *time.Duration { return &r.MaxWait }).Says("how long calls wait"),
		},
		Examples:   []rule.Example[toyRule]{{About: "two calls", Rule: toyRule{Resource: "r", Limit: 2, MaxWait: 1}, Fields: shown}},
		Attributes: func(*toyRule) []string { return []string{"user"} },
		Validate: func(r *toyRule) (faults []rule.Fault) {
			if of == "validation panics" && r.Limit < 0 {
				panic("negative")
			}
			if r.Limit < 0 {
				faults = append(faults, rule.Fault{Field: "limit", Message: "is negative"})
			}
			if r.MaxWait < 0 && (len(faults) == 0 || of != "only the first mistake is reported") {
				faults = append(faults, rule.Fault{Field: "maxWait", Message: "is negative"})
			}
			return faults
		},
		New: func(r *toyRule, env rule.Env) rule.Limiter {
			s := &toyState{of: of, users: make([]toyUser, toyUsers), changed: env.Changed}
			s.forced = env.Forced
			if of == "forced states of new limiters are ignored" {
				s.forced = ""
			}
			l := &toyLimiter{toyState: s, rule: r, version: env.Version}
			if makesForecasts(of) {
				return toyForecaster{l}
			}
			return l
		},
		Adopt: func(present rule.Limiter, r *toyRule, env rule.Env) rule.Limiter {
			p := present.(*toyLimiter)
			s := p.toyState
			switch of {
			case "a newer version forgets":
				s = &toyState{of: of, users: make([]toyUser, toyUsers), changed: env.Changed}
			case "a newer version is in force at once":
				s.version = env.Version
			}
			return &toyLimiter{toyState: s, rule: r, version: env.Version}
		},
		States: []string{"free", "shut"}, Controls: []string{"shut"},
	}
	if makesForecasts(of) {
		spec.Attributes = nil
	}
	if of == "defaults change" {
		spec.Defaults = func(r *toyRule) { r.Limit++ }
	}
	return rule.Define(spec)
}

// toyState is what all versions have in common.
type toyState struct {
	of      flaw
	mu      sync.Mutex
	version uint64
	latest  clock.Instant
	forced  string
	retired bool
	changed func(at clock.Instant, from, to, because string)
	users   []toyUser
	garbage []*toyUser
}

// toyUsers is how many users are told apart, and toyQueue how many calls of each wait.
const (
	toyUsers = 1024
	toyQueue = 100
)

type toyUser struct {
	under int
	queue []*toyWaiter
}

type toyLimiter struct {
	*toyState
	rule    *toyRule
	version uint64
}

func (l *toyLimiter) is(f flaw) bool { return l.of == f }

// user returns the place of a user: by the number in a value such as value-7.
func (l *toyLimiter) user(c rule.Call) rule.Ticket {
	name, _ := c.Attribute.Text()
	if l.is("values share one count") {
		return 0
	}
	n := 0
	for _, digit := range strings.TrimPrefix(name, "value-") {
		n = (10*n + int(digit&15)) % toyUsers
	}
	return rule.Ticket(n)
}

func (l *toyLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.is("it panics at numbers") {
		if _, ok := c.Attribute.Number(); ok {
			panic("a number")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version < l.toyState.version && !l.is("an older version goes on") {
		return 0, rule.Stale
	}
	l.activate()
	if c.Now < l.latest && l.is("late calls are stale for ever") {
		return 0, rule.Stale
	}
	if c.Now < l.latest && l.is("late calls are sent nowhere") {
		return rule.Ticket(c.Now), rule.Stale
	}
	if c.Now != l.latest && l.is("late calls begin anew") {
		l.users[l.user(c)].under = 0
		l.latest = c.Now
	}
	l.latest = max(l.latest, c.Now)
	if l.forced != "" {
		return 0, rule.Block
	}
	at := l.user(c)
	u := &l.users[at]
	limit := l.rule.Limit
	if l.is("one more passes") {
		limit++
	}
	if u.under >= limit || len(u.queue) > 0 && !l.is("calls overtake") {
		return l.full()
	}
	if l.is("check and take are two steps") {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	u.under++
	l.waste("passing allocates")
	if l.is("state grows") {
		l.garbage = append(l.garbage, new(toyUser))
	}
	return at, rule.Pass
}

// full is the answer to a call that finds no place.
func (l *toyLimiter) full() (rule.Ticket, rule.Decision) {
	l.waste("refusing allocates")
	switch {
	case l.rule.MaxWait > 0:
		return 0, rule.Wait
	case l.is("refusals say another time than RetryAfter"):
		return rule.RetryTicket(time.Hour), rule.Block
	}
	return 0, rule.Block
}

func (l *toyLimiter) waste(f flaw) {
	if l.is(f) {
		l.garbage = append(l.garbage[:0:0], new(toyUser))
	}
}

// over is called when a call is over that took a place, with the mutex held.
func (l *toyLimiter) over(t rule.Ticket) {
	u := &l.users[t]
	if u.under > 0 {
		u.under--
	}
	l.grant(u)
}

// grant hands free places to waiting calls.
func (l *toyLimiter) grant(u *toyUser) {
	for len(u.queue) > 0 && u.under < l.rule.Limit {
		first := 0
		if l.is("the last one passes first") {
			first = len(u.queue) - 1
		}
		w := u.queue[first]
		u.queue = slices.Delete(u.queue, first, first+1)
		u.under++
		w.granted = true
		if !l.is("wakes nobody") {
			w.wake()
		}
	}
}

func (l *toyLimiter) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.is("nothing is given back"):
		return
	case l.is("tickets mean nothing"):
		t = 1
	}
	l.over(t)
}

func (l *toyLimiter) Refund(c rule.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := &l.users[l.user(c)]
	if u.under -= int(c.Tokens); !l.is("more is given back than was taken") {
		u.under = max(0, u.under)
	}
}

func (l *toyLimiter) Done(t rule.Ticket, _ rule.Exit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired && l.is("calls that end late panic") {
		panic("retired")
	}
	if !l.is("ends make no room") {
		l.over(t)
	}
}

func (l *toyLimiter) RetryAfter(rule.Call) time.Duration {
	if l.is("RetryAfter is too short") {
		return time.Second
	}
	return 0
}

func (l *toyLimiter) Status(clock.Instant) rule.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return rule.Status{State: l.state()}
}

func (l *toyLimiter) state() string { return cmp.Or(l.forced, "free") }

func (l *toyLimiter) Idle(clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.is("it is never idle") && !slices.ContainsFunc(l.users, func(u toyUser) bool { return u.under > 0 })
}

func (l *toyLimiter) Control(now clock.Instant, state string) {
	l.mu.Lock()
	before := l.state()
	if !l.is("states cannot be forced") {
		l.forced = state
	}
	after := l.state()
	if l.is("changes are reported with the limiter locked") {
		l.changed(now, before, after, "")
	}
	l.mu.Unlock()
	if before != after && !l.is("changes are not reported") {
		l.changed(now, before, after, "")
	}
	if l.is("changes are reported twice") {
		l.changed(now, before, after, "")
	}
}

func (l *toyLimiter) Activate(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is("Activate does nothing") {
		l.activate()
	}
}

// activate puts this version in force if it is newer. The calls that wait ask it, as it may not be for them.
func (l *toyLimiter) activate() {
	if l.version <= l.toyState.version {
		return
	}
	if l.toyState.version > 0 && !l.is("calls wait for a rule that is not for them") {
		l.endWaits()
	}
	l.toyState.version = l.version
}

func (l *toyLimiter) Retire(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired = true; !l.is("calls wait for a rule that is gone") {
		l.endWaits()
	}
}

func (l *toyLimiter) endWaits() {
	for i := range l.users {
		for _, w := range l.users[i].queue {
			if w.stale = true; !l.is("nobody is told that the rule is gone") {
				w.wake()
			}
		}
		l.users[i].queue = nil
	}
}

func (l *toyLimiter) Join(c rule.Call, p rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.user(c)
	if len(l.users[at].queue) >= toyQueue && !l.is("queues grow") {
		return nil, 0, rule.Block
	}
	w := &toyWaiter{of: l, at: at, until: min(p.Until, c.Now.Add(l.rule.MaxWait)), wake: p.Wake}
	l.users[at].queue = append(l.users[at].queue, w)
	l.grant(&l.users[at])
	return w, 0, rule.Wait
}

// toyWaiter is a call that waits for a place.
type toyWaiter struct {
	of      *toyLimiter
	at      rule.Ticket
	until   clock.Instant
	wake    func()
	granted bool
	stale   bool
}

func (w *toyWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	switch {
	case w.stale:
		return 0, 0, rule.Stale
	case now >= w.until && w.of.is("waits have no end"):
		return 0, 0, rule.Wait
	case now >= w.until && w.of.is("calls pass after their time"):
		return w.at, 0, rule.Pass
	case now >= w.until:
		w.leave()
		return 0, 0, rule.Block
	case w.granted:
		return w.at, 0, rule.Pass
	}
	return 0, w.until.Sub(now), rule.Wait
}

func (w *toyWaiter) Leave(clock.Instant) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if !w.of.is("a call that leaves keeps its place") {
		w.leave()
	}
}

func (w *toyWaiter) leave() {
	u := &w.of.users[w.at]
	u.queue = slices.DeleteFunc(u.queue, func(other *toyWaiter) bool { return other == w })
	if w.granted && !w.of.is("what was granted is lost") {
		w.of.over(w.at)
	}
}
