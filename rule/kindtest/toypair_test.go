package kindtest

import (
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// pairFlaws are the mistakes of a kind that counts nothing: a call waits until another one of its user comes.
func pairFlaws() map[string][]flaw {
	return map[string][]flaw{
		"AdoptChangesNothingYet":        {"a newer version is in force at once"},
		"OlderVersionIsStale":           {"an older version goes on", "Activate does nothing"},
		"WaitersAreWoken":               {"wakes nobody", "calls wait on"},
		"WaiterThatLeavesTakesNothing":  {"calls that leave stay"},
		"WaiterDoesNotPassAfterItsTime": {"calls pass after their time"},
		"WaitsEndInTime":                {"waits have no end"},
		"RetireEndsWaits":               {"calls wait for a rule that is gone"},
		"WaitsEndWithTheRuleForThem":    {"calls wait for a rule that is not for them"},
		"QueuesAreBounded":              {"queues grow"},
	}
}

func TestPairsPass(t *testing.T) { Run(t, pairOptions("")) }

func pairOptions(of flaw) Options {
	common := func(r *toyRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[toyRule]{
		Kind: "pair", Phase: rule.PhaseValue, Reason: rule.Overloaded, Common: common,
		Examples:   []rule.Example[toyRule]{{About: "pairs", Rule: toyRule{Resource: "r"}, Fields: []string{"resource"}}},
		Attributes: func(*toyRule) []string { return []string{"user"} },
		New: func(_ *toyRule, env rule.Env) rule.Limiter {
			return &pairLimiter{&pairs{of: of, version: env.Version, alone: make(map[string]*pairWaiter)}, env.Version}
		},
		Adopt: func(present rule.Limiter, _ *toyRule, env rule.Env) rule.Limiter {
			p := present.(*pairLimiter).pairs
			if of == "a newer version is in force at once" {
				p.version = env.Version
			}
			return &pairLimiter{p, env.Version}
		},
	})
	return Options{Kind: kind, Rules: []Rule{{
		Rule: kind.Of(toyRule{Resource: "r"}), Again: rule.Never,
		Release: func(q rule.Queue, c rule.Call) { _, _ = q.Acquire(c) },
	}}}
}

// pairs is what all versions have in common.
type pairs struct {
	of      flaw
	mu      sync.Mutex
	version uint64
	alone   map[string]*pairWaiter
}

type pairLimiter struct {
	*pairs
	version uint64
}

type pairWaiter struct {
	of    *pairs
	user  string
	until clock.Instant
	wake  func()
	says  rule.Decision
}

const pairsAtMost = 1000

// activate says whether this version is in force.
func (l *pairLimiter) activate() bool {
	if l.version > l.pairs.version {
		l.pairs.version = l.version
		if l.of != "calls wait for a rule that is not for them" {
			l.endAll()
		}
	}
	return l.version == l.pairs.version || l.of == "an older version goes on"
}

func (l *pairLimiter) endAll() {
	for _, w := range l.alone {
		w.end(rule.Stale)
	}
}

func (l *pairLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	user, _ := c.Attribute.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.activate() {
		return 0, rule.Stale
	}
	if w := l.alone[user]; w != nil && l.of != "calls wait on" {
		w.end(rule.Pass)
		return 0, rule.Pass
	}
	if len(l.alone) >= pairsAtMost {
		return 0, rule.Block
	}
	return 0, rule.Wait
}

func (l *pairLimiter) Join(c rule.Call, p rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	user, _ := c.Attribute.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.alone) >= pairsAtMost && l.of != "queues grow" {
		return nil, 0, rule.Block
	}
	w := &pairWaiter{l.pairs, user, min(p.Until, c.Now.Add(time.Minute)), p.Wake, rule.Wait}
	l.alone[user] = w
	return w, 0, rule.Wait
}

func (w *pairWaiter) end(says rule.Decision) {
	delete(w.of.alone, w.user)
	if w.says = says; w.of.of != "wakes nobody" {
		w.wake()
	}
}

func (w *pairWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.says == rule.Wait && now >= w.until {
		switch w.of.of {
		case "waits have no end":
			return 0, w.until.Sub(now), rule.Wait
		case "calls pass after their time":
			return 0, 0, rule.Pass
		}
		w.end(rule.Block)
	}
	if w.says == rule.Wait {
		return 0, w.until.Sub(now), rule.Wait
	}
	return 0, 0, w.says
}

func (w *pairWaiter) Leave(clock.Instant) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.says == rule.Wait && w.of.of != "calls that leave stay" {
		w.end(rule.Block)
	}
}

func (l *pairLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}

func (l *pairLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

func (l *pairLimiter) Status(clock.Instant) rule.Status { return rule.Status{} }

func (l *pairLimiter) Idle(clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.alone) == 0
}

func (l *pairLimiter) Activate(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != "Activate does nothing" {
		l.activate()
	}
}

func (l *pairLimiter) Retire(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != "calls wait for a rule that is gone" {
		l.endAll()
	}
}
