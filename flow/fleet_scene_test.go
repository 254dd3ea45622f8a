package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rule"
)

// fleetScene is instances of a service that share one store in the process, on a virtual
// clock that goes on in milliseconds. Answers take one, unless the network is down.
type fleetScene struct {
	t         testing.TB
	clock     *clock.Virtual
	store     *fleetmemory.Store
	instances []*instance
	isDown    bool
}

// instance is one of them, with a limiter of the rule.
type instance struct {
	scene   *fleetScene
	member  *sharing.Member
	rule    rule.Rule
	version uint64
	limiter rule.Limiter
	sent    []*sharing.Batch

	onPass  func(*fleetCall) // or nil
	waiting []*fleetCall
	passed  []clock.Instant
	refused int
}

// fleetCall is a call that waits.
type fleetCall struct {
	rule.Call
	waiter rule.Waiter
	woken  bool
	pollAt clock.Instant
	since  clock.Instant
	ticket rule.Ticket
	passed bool
}

func newFleetScene(t testing.TB, r flow.Rule, instances int) *fleetScene {
	t.Helper()
	require.Empty(t, flow.Kind().Faults(r))
	c := clock.NewVirtual(epoch.Time())
	s := &fleetScene{t: t, clock: c, store: fleetmemory.New(c)}
	for i := range instances {
		in := &instance{
			scene:  s,
			member: sharing.NewMember(fleet.Config{Manual: true, Instance: string(rune('a' + i))}, c, quiet, uint64(i)+1),
		}
		s.instances = append(s.instances, in)
		in.load(r)
	}
	return s
}

// load brings a version of the rule into force, as the engine does.
func (in *instance) load(r flow.Rule) (adopted bool) {
	in.version++
	in.rule = flow.Kind().Of(r).WithDefaults()
	env := rule.Env{
		Version: in.version, Now: in.scene.clock.Now(), Fleet: in.member, Signals: new(oneSignal), Resource: "r",
		Changed: func(clock.Instant, string, string, string) {},
	}
	var next rule.Limiter
	if in.limiter != nil {
		next = in.rule.Adopt(in.limiter, env)
	}
	if adopted = next != nil; !adopted {
		next = in.rule.NewLimiter(env)
	}
	if retirer, ok := in.limiter.(rule.Retirer); ok && !adopted {
		retirer.Retire(env.Now)
	}
	in.limiter = next
	next.(rule.Activator).Activate(env.Now)
	return adopted
}

// run lets the time pass. Each millisecond, every instance makes calls.
func (s *fleetScene) run(d time.Duration, calls func(in *instance, i int)) {
	for end := s.clock.Now().Add(d); s.clock.Now() < end; {
		s.clock.Advance(time.Millisecond)
		for i, in := range s.instances {
			in.step()
			in.poll()
			if calls != nil {
				calls(in, i)
			}
		}
	}
}

// step delivers the answers to what was sent, and sends what is due.
func (in *instance) step() {
	now := in.scene.clock.Now()
	sent := in.sent
	in.sent = nil
	for _, batch := range sent {
		if in.scene.isDown {
			in.member.Fail(now, batch, fleet.ErrUnavailable)
			continue
		}
		require.NoError(in.scene.t, batch.Send(in.scene.t.Context(), in.scene.store))
		in.member.Deliver(now, batch)
	}
	if in.member.Due() <= now {
		in.sent = append(in.sent, in.member.Step(now)...)
	}
}

// poll goes on with the calls that wait.
func (in *instance) poll() {
	now := in.scene.clock.Now()
	for again := true; again; {
		again = false
		waiting := in.waiting
		in.waiting = nil
		for _, c := range waiting {
			if !c.woken && c.pollAt > now {
				in.waiting = append(in.waiting, c)
				continue
			}
			c.woken = false
			ticket, after, decision := c.waiter.Poll(now)
			switch decision {
			case rule.Wait:
				c.pollAt = now.Add(after)
				if after == 0 {
					c.pollAt = never
				}
				in.waiting = append(in.waiting, c)
				again = again || c.woken
			case rule.Pass:
				in.pass(c, ticket)
				again = true
			default:
				in.refused++
				again = true
			}
		}
	}
}

const never = clock.Instant(1<<63 - 1)

// call makes a call of n tokens that waits if the rule says so.
func (in *instance) call(n int32, p rule.Priority) *fleetCall {
	now := in.scene.clock.Now()
	c := &fleetCall{Call: rule.Call{Now: now, Tokens: n}, since: now}
	c.SetCaller(p, false)
	ticket, decision := in.limiter.Acquire(c.Call)
	if decision == rule.Wait && !in.rule.Target().Shadow {
		var waiter rule.Waiter
		waiter, ticket, decision = in.limiter.(rule.Queue).Join(c.Call, rule.Patience{Since: now, Until: never, Wake: func() { c.woken = true }})
		if decision == rule.Wait {
			c.waiter, c.woken = waiter, true
			in.waiting = append(in.waiting, c)
			in.poll()
			return c
		}
	}
	if decision == rule.Pass {
		in.pass(c, ticket)
	} else {
		in.refused++
	}
	return c
}

func (in *instance) pass(c *fleetCall, ticket rule.Ticket) {
	c.passed, c.ticket = true, ticket
	in.passed = append(in.passed, in.scene.clock.Now())
	if in.onPass != nil {
		in.onPass(c)
	}
}

// total returns how many calls passed on all instances in a time from the epoch on.
func (s *fleetScene) total(from, to time.Duration) (passed int) {
	for _, in := range s.instances {
		for _, at := range in.passed {
			if at > epoch.Add(from) && at <= epoch.Add(to) {
				passed++
			}
		}
	}
	return passed
}
