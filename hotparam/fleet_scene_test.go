package hotparam_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/rule"
)

// scene is instances of a service that share one store in the process, on a virtual clock that
// goes on in milliseconds. Answers take one, unless the network is down.
type scene struct {
	t         testing.TB
	clock     *clock.Virtual
	store     *fleetmemory.Store
	instances []*instance
	isDown    bool
	passed    map[string][]clock.Instant // by value, counted from outside
	requests  int                        // of all instances
	largest   int                        // requests of one batch
	keys      map[string]int             // of requests, with the number of instances that made some
}

// instance is one of them, with a limiter of the rule.
type instance struct {
	scene   *scene
	member  *sharing.Member
	rule    rule.Rule
	version uint64
	limiter rule.Limiter
	sent    []*exchange.Batch
	keys    map[string]bool
	waiting []*waitingCall
	refused int
}

// waitingCall is a call that waits for an answer.
type waitingCall struct {
	value  string
	waiter rule.Waiter
	woken  bool
}

func newScene(t testing.TB, r hotparam.Rule, instances int) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	s := &scene{t: t, clock: clock.NewVirtual(epoch.Time()), passed: map[string][]clock.Instant{}, keys: map[string]int{}}
	s.store = fleetmemory.New(s.clock)
	for i := range instances {
		in := &instance{scene: s, keys: map[string]bool{}, member: sharing.NewMember(
			fleet.Config{Manual: true, Instance: string(rune('a' + i))}, s.clock, slog.New(slog.DiscardHandler), uint64(i)+1,
		)}
		s.instances = append(s.instances, in)
		in.load(r)
	}
	s.run(1500*time.Millisecond, nil) // until all instances know how many there are
	return s
}

// shared makes a rule one for the whole fleet.
func shared(r hotparam.Rule) hotparam.Rule {
	r.Resource, r.Param, r.Scope = "r", rule.StringsOf("user"), rule.ScopeFleet
	return r
}

// load brings a version of the rule into force, as the engine does.
func (in *instance) load(r hotparam.Rule) (adopted bool) {
	require.Empty(in.scene.t, hotparam.Kind().Faults(r))
	in.version++
	in.rule = hotparam.Kind().Of(r).WithDefaults()
	env := rule.Env{
		Version: in.version, Now: in.scene.clock.Now(), Fleet: in.member, Resource: "r", Seed: 1,
		Changed: func(clock.Instant, string, string, string) {},
	}
	var next rule.Limiter
	if in.limiter != nil {
		next = in.rule.Adopt(in.limiter, env)
	}
	if adopted = next != nil; !adopted {
		next = in.rule.NewLimiter(env)
	}
	former := in.limiter
	in.limiter = next
	next.(rule.Activator).Activate(env.Now)
	if retirer, ok := former.(rule.Retirer); ok {
		retirer.Retire(env.Now)
	}
	return adopted
}

// run lets the time pass. Each millisecond, every instance makes calls.
func (s *scene) run(d time.Duration, calls func(in *instance, i int)) {
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
	now, sent := in.scene.clock.Now(), in.sent
	in.sent = nil
	for _, batch := range sent {
		if in.scene.isDown {
			in.member.Fail(now, batch, fleet.ErrUnavailable)
			continue
		}
		in.scene.requests += len(batch.Requests)
		for i := range batch.Requests {
			if key := batch.Requests[i].Terms.Key; !in.keys[key] {
				in.keys[key] = true
				in.scene.keys[key]++
			}
		}
		in.scene.largest = max(in.scene.largest, len(batch.Requests))
		require.NoError(in.scene.t, batch.Send(in.scene.t.Context(), in.scene.store))
		in.member.Deliver(now, batch)
	}
	for in.member.Due() <= now {
		in.sent = append(in.sent, in.member.Step(now)...)
	}
}

// poll goes on with the calls that wait.
func (in *instance) poll() {
	waiting := in.waiting
	in.waiting = nil
	for _, c := range waiting {
		if !c.woken {
			in.waiting = append(in.waiting, c)
			continue
		}
		c.woken = false
		_, _, decision := c.waiter.Poll(in.scene.clock.Now())
		in.note(c.value, decision)
		if decision == rule.Wait {
			in.waiting = append(in.waiting, c)
		}
	}
}

// call makes a call of a value, which waits if the rule says so.
func (in *instance) call(value string) (passed bool) {
	c := rule.Call{Now: in.scene.clock.Now(), Tokens: 1, Attribute: user(value)}
	_, decision := in.limiter.Acquire(c)
	if decision == rule.Wait {
		w := &waitingCall{value: value}
		patience := rule.Patience{Since: c.Now, Until: 1<<63 - 1, Wake: func() { w.woken = true }}
		if w.waiter, _, decision = in.limiter.(rule.Queue).Join(c, patience); decision == rule.Wait {
			in.waiting = append(in.waiting, w)
		}
	}
	in.note(value, decision)
	return decision == rule.Pass
}

func (in *instance) note(value string, d rule.Decision) {
	switch d {
	case rule.Pass:
		in.scene.passed[value] = append(in.scene.passed[value], in.scene.clock.Now())
	case rule.Block:
		in.refused++
	}
}

// total returns how many calls of a value passed on all instances.
func (s *scene) total(value string) int { return len(s.passed[value]) }

// most returns the most calls of a value that passed within any time of a length.
func (s *scene) most(value string, within time.Duration) (most int) {
	all := s.passed[value]
	first := 0
	for last := range all {
		for all[last].Sub(all[first]) >= within {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

func (in *instance) gauge(i int) float64 { return in.limiter.Status(in.scene.clock.Now()).Gauges[i] }
