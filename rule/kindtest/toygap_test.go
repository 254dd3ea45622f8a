package kindtest

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// freesOthers is a flaw of a kind whose calls come so far apart.
const freesOthers flaw = "what is given back late frees what others took"

// gapOptions are those of a kind whose calls are a second apart.
func gapOptions(of flaw) Options {
	common := func(r *toyRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[toyRule]{
		Kind: "gap", Phase: rule.PhaseRate, Reason: rule.RateLimited, Common: common,
		New: func(*toyRule, rule.Env) rule.Limiter { return &gapLimiter{of: of} },
	})
	return Options{Kind: kind, Rules: []Rule{{Rule: kind.Of(toyRule{Resource: "r"}), Passes: 1, Again: time.Second}}}
}

type gapLimiter struct {
	of   flaw
	last atomic.Int64 // the instant of the last pass; 0 for none
}

func (l *gapLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	last := l.last.Load()
	if last > int64(c.Now) {
		return rule.Ticket(last), rule.Stale
	}
	if l.RetryAfter(c) > 0 || !l.last.CompareAndSwap(last, int64(c.Now)) {
		return 0, rule.Block
	}
	return rule.Ticket(c.Now), rule.Pass
}

func (l *gapLimiter) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) {
	if l.of == freesOthers {
		l.last.Store(0)
		return
	}
	l.last.CompareAndSwap(int64(t), 0)
}

func (l *gapLimiter) RetryAfter(c rule.Call) time.Duration {
	last := l.last.Load()
	if last == 0 {
		return 0
	}
	return max(0, time.Second-c.Now.Sub(clock.Instant(last)))
}

func (l *gapLimiter) Status(clock.Instant) rule.Status { return rule.Status{} }

func (l *gapLimiter) Idle(now clock.Instant) bool { return l.RetryAfter(rule.Call{Now: now}) == 0 }
