package isolation_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// step is one row of a timeline: what happens when, and what comes of it.
type step struct {
	at   time.Duration // after the epoch
	do   string        // see [scene.do]
	want string
}

// scene is a limiter, its versions, and calls with names.
type scene struct {
	t        *testing.T
	rule     isolation.Rule
	versions []limiter
	now      clock.Instant
	calls    map[string]*sceneCall
}

type sceneCall struct {
	waiter rule.Waiter
	ticket rule.Ticket
	wakes  int
	until  clock.Instant // when its context ends
}

func play(t *testing.T, r isolation.Rule, steps []step) {
	t.Helper()
	s := &scene{t: t, rule: r, versions: []limiter{newLimiter(t, r)}, calls: map[string]*sceneCall{}}
	for _, step := range steps {
		s.now = epoch.Add(step.at)
		require.Equal(t, step.want, s.do(step.do), "at %v: %s", step.at, step.do)
	}
}

// latest is the newest version of the rule.
func (s *scene) latest() limiter { return s.versions[len(s.versions)-1] }

// do is what can happen:
//
//	call a            a call comes, and joins the queue if it has to wait
//	call a since 1s   it has waited for another rule since 1s after the epoch
//	call a until 2s   its context ends at 2s
//	call a high       it has that priority, rather than normal
//	old a             a call comes that asks the first version of the rule
//	end a, give back a, leave a
//	turn a            asks how its wait stands
//	wakes a           says how often it has been woken
//	limit 5, maxWait 1s, maxQueue 2, order lifo, origin x, shadow
//	                  a newer version of the rule is activated
//	adopt 5           a newer version is made, but not activated
//	activate, retire, status, idle, retry
func (s *scene) do(text string) string {
	words := strings.Fields(text)
	if words[0] == "give" {
		words = append([]string{"giveBack"}, words[2:]...)
	}
	if len(words) > 1 && s.calls[words[1]] == nil {
		s.calls[words[1]] = &sceneCall{until: endless}
	}
	switch words[0] {
	case "call", "old":
		return s.come(words)
	case "end", "giveBack", "leave", "turn", "wakes":
		return s.goOn(words[0], s.calls[words[1]])
	case "activate":
		s.latest().Activate(s.now)
	case "retire":
		s.latest().Retire(s.now)
	case "status":
		g := gaugesOf(s.latest(), s.now)
		return fmt.Sprintf("%d/%d, %d wait, highest %d", g.inFlight, g.limit, g.waiting, g.highest)
	case "idle":
		return strconv.FormatBool(s.latest().Idle(s.now))
	case "retry":
		return s.latest().RetryAfter(s.call()).String()
	default:
		s.change(words)
	}
	return ""
}

func (s *scene) call() rule.Call { return rule.Call{Now: s.now, Tokens: 7} }

func (s *scene) come(words []string) string {
	l, c := s.latest(), s.calls[words[1]]
	if words[0] == "old" {
		l = s.versions[0]
	}
	since, call := s.now, s.call()
	if len(words) > 2 {
		switch words[2] {
		case "since":
			since = epoch.Add(s.duration(words[3]))
		case "until":
			c.until = epoch.Add(s.duration(words[3]))
		default:
			call.SetCaller(s.priority(words[2]), false)
		}
	}
	ticket, decision := l.Acquire(call)
	if decision == rule.Wait {
		c.waiter, ticket, decision = l.Join(call, rule.Patience{Since: since, Until: c.until, Wake: func() { c.wakes++ }})
	}
	c.ticket = ticket
	return name(decision)
}

func (s *scene) goOn(what string, c *sceneCall) string {
	switch what {
	case "end":
		s.versions[0].Done(c.ticket, rule.Exit{Now: s.now})
	case "giveBack":
		s.latest().GiveBack(s.now, c.ticket, 7)
	case "leave":
		c.waiter.Leave(s.now)
	case "wakes":
		return strconv.Itoa(c.wakes)
	case "turn":
		ticket, remaining, decision := c.waiter.Poll(s.now)
		c.ticket = ticket
		if decision == rule.Wait {
			return "wait " + remaining.String()
		}
		return name(decision)
	}
	return ""
}

// change makes a newer version of the rule.
func (s *scene) change(words []string) {
	switch words[0] {
	case "limit", "adopt":
		s.rule.Limit = s.number(words[1])
	case "maxQueue":
		s.rule.MaxQueue = s.number(words[1])
	case "maxWait":
		s.rule.MaxWait = s.duration(words[1])
	case "order":
		s.rule.Order = isolation.Order(words[1])
	case "origin":
		s.rule.Origin = words[1]
	case "shadow":
		s.rule.Shadow = true
	default:
		require.Fail(s.t, "unknown step: "+words[0])
	}
	next := adopt(s.t, s.latest(), s.rule, uint64(len(s.versions)+1))
	s.versions = append(s.versions, next)
	if words[0] != "adopt" {
		next.Activate(s.now)
	}
}

func (s *scene) priority(text string) rule.Priority {
	for p := rule.PrioritySheddable; p <= rule.PriorityCritical; p++ {
		if p.String() == text {
			return p
		}
	}
	require.Fail(s.t, "unknown priority: "+text)
	return 0
}

func (s *scene) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

func (s *scene) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

func name(d rule.Decision) string { return [...]string{"pass", "block", "wait", "stale"}[d] }
