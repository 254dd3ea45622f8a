package kindtest

import (
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// hoursFlaws are the mistakes of a kind that goes by the time of day: it refuses calls from 10 to 22 o'clock, but for
// those of a high priority.
func hoursFlaws() map[string][]flaw {
	return map[string][]flaw{
		"GivenBackIsAsIfItHadNeverBeen": {"what is given back stays counted"},
		"OlderVersionIsStale":           {"an older version goes on", "Activate does nothing"},
		"ForcedStatesHold":              {"states cannot be forced", "states stay forced"},
		"StateChangesAreReported":       {"changes are not reported", "changes are reported by calls alone"},
	}
}

func TestHoursPass(t *testing.T) { Run(t, hoursOptions("")) }

func hoursOptions(of flaw) Options {
	common := func(r *toyRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[toyRule]{
		Kind: "hours", Phase: rule.PhaseAccess, Reason: rule.Unavailable, Common: common,
		New: func(_ *toyRule, env rule.Env) rule.Limiter {
			return &hoursLimiter{&hours{of: of, version: env.Version, forced: env.Forced, changed: env.Changed, state: "free"}, env.Version}
		},
		Adopt: func(present rule.Limiter, _ *toyRule, env rule.Env) rule.Limiter {
			return &hoursLimiter{present.(*hoursLimiter).hours, env.Version}
		},
		Examples: []rule.Example[toyRule]{{About: "by day", Rule: toyRule{Resource: "r"}, Fields: []string{"resource"}}},
		Gauges:   []rule.Gauge{{Name: "urgent_total", Help: "Calls that passed though all others were refused.", Counter: true}},
		States:   []string{"free", "shut"}, Controls: []string{"free", "shut"},
	})
	return Options{Kind: kind, Rules: []Rule{
		{Rule: kind.Of(toyRule{Name: "by day", Resource: "r"})},
		{Rule: kind.Of(toyRule{Name: "in the evening", Resource: "r"}), Start: time.Date(2030, 3, 17, 21, 30, 0, 0, time.UTC)},
		{Rule: kind.Of(toyRule{Name: "at night", Resource: "r"}), Passes: All, Start: time.Date(2030, 3, 17, 23, 0, 0, 0, time.UTC)},
	}}
}

// hours is what all versions have in common.
type hours struct {
	of      flaw
	changed func(at clock.Instant, from, to, because string)

	mu      sync.Mutex
	version uint64
	latest  clock.Instant
	forced  string
	state   string // that was reported
	urgent  int
}

type hoursLimiter struct {
	*hours
	version uint64
}

// at returns the state at an instant, tells if it is another one, and returns with the mutex locked.
func (l *hoursLimiter) at(now clock.Instant, tells bool) string {
	l.mu.Lock()
	l.latest = max(now, l.latest)
	state := l.forced
	if state == "" {
		state = "free"
		if hour := l.latest.Time().Hour(); hour >= 10 && hour < 22 {
			state = "shut"
		}
	}
	if before := l.state; before != state && tells && l.of != "changes are not reported" {
		l.state = state
		l.mu.Unlock()
		l.changed(now, before, state, "")
		l.mu.Lock()
	}
	return state
}

func (l *hoursLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	state := l.at(c.Now, true)
	defer l.mu.Unlock()
	if l.version < l.hours.version && l.of != "an older version goes on" {
		return 0, rule.Stale
	}
	l.hours.version = max(l.version, l.hours.version)
	switch {
	case state == "free":
		return 0, rule.Pass
	case c.Priority() > rule.PriorityNormal:
		l.urgent++
		return 1, rule.Pass
	}
	return 0, rule.Block
}

func (l *hoursLimiter) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t == 1 && l.of != "what is given back stays counted" {
		l.urgent--
	}
}

func (l *hoursLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

func (l *hoursLimiter) Status(now clock.Instant) rule.Status {
	state := l.at(now, l.of != "changes are reported by calls alone")
	defer l.mu.Unlock()
	return rule.Status{State: state, Gauges: []float64{float64(l.urgent)}}
}

func (l *hoursLimiter) Idle(clock.Instant) bool { return true }

func (l *hoursLimiter) Control(now clock.Instant, state string) {
	l.mu.Lock()
	if l.of != "states cannot be forced" && (state != "" || l.of != "states stay forced") {
		l.forced = state
	}
	l.mu.Unlock()
	l.at(now, true)
	l.mu.Unlock()
}

func (l *hoursLimiter) Activate(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != "Activate does nothing" {
		l.hours.version = max(l.version, l.hours.version)
	}
}
