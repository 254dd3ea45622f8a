package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// service is an engine on a virtual clock with one hotParam rule on the resource "login",
// which limits users.
type service struct {
	tb     testing.TB
	clock  *clock.Virtual
	engine *core.Engine
}

func newService(tb testing.TB, seed uint64, limits ...hotparam.Rule) *service {
	tb.Helper()
	s := &service{tb: tb, clock: clock.NewVirtual(time.Unix(1_700_000_000, 0))}
	s.engine = core.New(core.Config{Clock: s.clock, Seed: seed, Logger: slog.New(slog.DiscardHandler)})
	tb.Cleanup(s.engine.Close)
	s.load(limits...)
	return s
}

// load replaces the rules.
func (s *service) load(limits ...hotparam.Rule) {
	s.tb.Helper()
	for i := range limits {
		limits[i].Name, limits[i].Resource = fmt.Sprint("limit-", i), "login"
		if limits[i].Param.Len() == 0 {
			limits[i].Param = rule.StringsOf("user")
		}
	}
	require.NoError(s.tb, s.engine.Load(rules.Set{HotParam: limits}))
}

// enter makes a call and says whether it passes.
func (s *service) enter(opts ...core.Option) (*core.Guard, bool) {
	guard, err := s.engine.Entry(context.Background(), "login", opts...)
	if err != nil {
		require.ErrorIs(s.tb, err, core.ErrBlocked)
	}
	return &guard, err == nil
}

// call makes a call that ends at once.
func (s *service) call(opts ...core.Option) bool {
	guard, passes := s.enter(opts...)
	guard.Exit()
	return passes
}

func (s *service) gauge(name string) float64 {
	for i, g := range hotparam.Kind().Gauges() {
		if g.Name == name {
			return s.engine.Explain("login")[0].Gauges[i]
		}
	}
	s.tb.Fatalf("no gauge %s", name)
	return 0
}

// attack is a rule, and how long calls last that its limit is for.
type attack struct {
	rule hotparam.Rule
	took time.Duration // of a call
}

func attacks() map[string]attack {
	penalty := hotparam.Penalty{After: 5, Within: 10 * time.Second, For: 30 * time.Second}
	return map[string]attack{
		"token bucket":   {rule: hotparam.Rule{Limit: 5, Window: 10 * time.Second}},
		"burst":          {rule: hotparam.Rule{Limit: 5, Window: 10 * time.Second, Burst: 20}},
		"sliding window": {rule: hotparam.Rule{Limit: 5, Window: 10 * time.Second, Algorithm: hotparam.SlidingWindow}},
		"throttle":       {rule: hotparam.Rule{Limit: 5, Window: 10 * time.Second, Algorithm: hotparam.Throttle}},
		"concurrency":    {rule: hotparam.Rule{Concurrency: 2}, took: 400 * time.Millisecond},
		"penalty":        {rule: hotparam.Rule{Limit: 5, Window: 10 * time.Second, Penalty: penalty}},
	}
}

// user is an exact reference for one user, with state that is never lost.
type user struct {
	rule    *hotparam.Rule
	at      clock.Instant   // token bucket: when it is full; throttle: when the next call passes
	passed  []clock.Instant // sliding window: of the calls that passed; concurrency: the ends
	refused []clock.Instant // penalty
	until   clock.Instant   // of the penalty
}

// may says whether the limit lets a call of one token pass.
func (u *user) may(now clock.Instant) bool {
	r := u.rule
	spacing := time.Duration(float64(r.Window) / max(1, r.Limit))
	switch {
	case r.Concurrency > 0:
		u.passed = after(u.passed, now)
		return len(u.passed) < r.Concurrency
	case r.Algorithm == hotparam.SlidingWindow:
		bucket := clock.Instant(r.Window / hotparam.Buckets)
		u.passed = after(u.passed, (now/bucket-hotparam.Buckets+1)*bucket-1)
		return len(u.passed) < int(r.Limit)
	case r.Algorithm == hotparam.Throttle:
		return u.at <= now
	default:
		return max(u.at, now).Add(spacing).Sub(now) <= time.Duration(r.Burst)*spacing
	}
}

// after drops instants up to one.
func after(instants []clock.Instant, last clock.Instant) []clock.Instant {
	for len(instants) > 0 && instants[0] <= last {
		instants = instants[1:]
	}
	return instants
}

// pass notes a call that passed.
func (u *user) pass(now clock.Instant, took time.Duration) {
	r := u.rule
	switch {
	case r.Concurrency > 0:
		u.passed = append(u.passed, now.Add(took))
	case r.Algorithm == hotparam.SlidingWindow:
		u.passed = append(u.passed, now)
	default:
		u.at = max(u.at, now).Add(time.Duration(float64(r.Window) / r.Limit))
	}
}

// refuse notes a call that was refused, which may begin a penalty.
func (u *user) refuse(now clock.Instant) {
	p := u.rule.Penalty
	if p.After == 0 || u.until > now {
		return
	}
	bucket := clock.Instant(p.Within / hotparam.Buckets)
	u.refused = append(after(u.refused, (now/bucket-hotparam.Buckets+1)*bucket-1), now)
	if len(u.refused) >= p.After {
		u.until, u.refused = now.Add(p.For), nil
	}
}

// arena is a service with an attacker and honest users. All passes are counted against
// references.
type arena struct {
	*service
	attack
	alone, really map[string]*user // with the passes each would get alone, and that it got
	calls, passed int              // of the attacker
	may           int              // passes that the limits allow the attacker
	honest, lost  int              // calls of honest users, and those that were refused
	endings       []ending
}

// ending is a guard of a call that is under way.
type ending struct {
	at    clock.Instant
	guard *core.Guard
}

func newArena(tb testing.TB, seed uint64, a attack) *arena {
	tb.Helper()
	if testing.Short() {
		tb.Skip("one goroutine, and long")
	}
	x := &arena{service: newService(tb, seed, a.rule), attack: a, alone: map[string]*user{}, really: map[string]*user{}}
	x.rule = hotparam.Kind().WithDefaults(a.rule)
	return x
}

func (x *arena) user(of map[string]*user, name string) *user {
	if of[name] == nil {
		of[name] = &user{rule: &x.rule}
	}
	return of[name]
}

// advance moves the clock and ends the calls that have lasted long enough.
func (x *arena) advance(d time.Duration) {
	x.clock.Advance(d)
	for len(x.endings) > 0 && x.endings[0].at <= x.clock.Now() {
		x.endings[0].guard.Exit()
		x.endings = x.endings[1:]
	}
}

// try makes a call of a user and says whether it passed. No user ever gets more than its
// limit, by a reference that knows all that passed.
func (x *arena) try(name string, opts ...core.Option) bool {
	now := x.clock.Now()
	guard, passes := x.enter(opts...)
	u := x.user(x.really, name)
	if !passes {
		u.refuse(now)
		return false
	}
	require.True(x.tb, u.may(now), "%s got more than its limit at %v", name, now.Time())
	u.pass(now, x.took)
	x.endings = append(x.endings, ending{now.Add(x.took), guard})
	return true
}

// strike is a call of the attacker.
func (x *arena) strike(name string, opts ...core.Option) {
	now := x.clock.Now()
	x.calls++
	if u := x.user(x.alone, name); u.until <= now && u.may(now) {
		u.pass(now, x.took)
		x.may++
	} else {
		u.refuse(now)
	}
	if x.try(name, opts...) {
		x.passed++
	}
}

// steady makes the calls of honest users that are due between two times: each comes with a
// period of its own, and keeps to the limit.
func (x *arena) steady(from, to, counted time.Duration) {
	base := x.rule.Window / time.Duration(max(1, x.rule.Limit))
	if x.rule.Concurrency > 0 {
		base = x.took
	}
	for i := range honestUsers {
		period := base * time.Duration(101+3*i) / 100
		if from/period == to/period {
			continue
		}
		name := fmt.Sprint("honest-", i)
		passes := x.try(name, core.String("user", name))
		if to > counted {
			x.honest++
			if !passes {
				x.lost++
			}
		}
	}
}

const honestUsers = 30

// check checks what the attacker and the honest users got.
func (x *arena) check() {
	gain := float64(x.passed) / math.Max(1, float64(x.may))
	x.tb.Logf("attacker: %d calls, %d of %d passes, %.2f ×; honest users: %d of %d lost; without a slot: %.0f",
		x.calls, x.passed, x.may, gain, x.lost, x.honest, x.gauge("without_slot"))
	assert.LessOrEqual(x.tb, x.passed, x.may)
	require.Positive(x.tb, x.honest)
	assert.LessOrEqual(x.tb, x.lost*1000, x.honest, "honest users lost %d of %d calls", x.lost, x.honest)
}

// run runs the attack for some time, after the honest users have come for a while.
func (x *arena) run(step, before, during time.Duration, strike func(i int)) {
	i := 0
	for now := time.Duration(0); now < before+during; now += step {
		x.advance(step)
		x.steady(now, now+step, before)
		if now >= before {
			strike(i)
			i++
		}
	}
	x.check()
}

// The attacker scans ten times more users than there are slots, with up to 20 times more
// calls than keep all slots busy; of concurrency, as many as have slots are under way.
func TestScanOfTenTimesMoreValuesThanSlotsGainsNothing(t *testing.T) {
	const slots = 500
	for name, a := range attacks() {
		a.rule.MaxValues = slots
		for _, tries := range []int{1, 7} {
			t.Run(fmt.Sprintf("%s, %d calls each", name, tries), func(t *testing.T) {
				t.Parallel()
				x := newArena(t, 1, a)
				x.run(2*time.Millisecond, time.Minute, time.Minute, func(i int) {
					account := fmt.Sprint("account-", i/tries%(10*slots))
					for range 2 {
						x.strike(account, core.String("user", account))
					}
				})
				if a.rule.Concurrency == 0 {
					assert.Positive(t, x.gauge("without_slot"))
				}
			})
		}
	}
}

// More values have calls under way than there are slots. Values then share counters, and
// honest users may be refused, but nobody has more calls under way than the limit.
func TestMoreValuesUnderWayThanSlotsGainNothing(t *testing.T) {
	t.Parallel()
	x := newArena(t, 1, attack{rule: hotparam.Rule{Concurrency: 2, MaxValues: 500}, took: 3 * time.Second})
	for i := range 30_000 {
		account := fmt.Sprint("account-", i/2%5000)
		x.advance(time.Millisecond)
		x.strike(account, core.String("user", account))
	}
	x.advance(x.took)
	assert.Positive(t, x.gauge("without_slot"))
	assert.LessOrEqual(t, x.passed, x.may)
	assert.Zero(t, x.gauge("values"))
	assert.True(t, x.call(core.String("user", "account-0")), "the counters are free again")
}

func TestFloodOfOneValueGainsNothing(t *testing.T) {
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newArena(t, 1, a)
			x.run(time.Millisecond, time.Minute, time.Minute, func(int) { x.strike("mallory", core.String("user", "mallory")) })
			assert.Equal(t, x.may, x.passed, "exactly what the limit allows")
			assert.Zero(t, x.gauge("without_slot"))
		})
	}
}

// So many accounts call once each that honest newcomers find no slot, and are refused for
// what the others used. Nobody has a penalty for that: all have done what they may. Once a
// newcomer gets a slot, what others used is in it for 10 seconds, which is up to 3 calls.
func TestRefusalsForWhatOthersUsedBringNoPenalty(t *testing.T) {
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow, hotparam.Throttle} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			s := newService(t, 3, hotparam.Rule{
				Limit: 5, Window: 10 * time.Second, Algorithm: algorithm, MaxValues: 500,
				Penalty: hotparam.Penalty{After: 5, Within: time.Minute, For: time.Hour},
			})
			refused := 0
			for i := range 60_000 {
				s.call(core.String("user", fmt.Sprint("account-", i)))
				for user := 0; i%2000 == 0 && i > 20_000 && user < 50; user++ { // each comes every 4 seconds
					if !s.call(core.String("user", fmt.Sprint("newcomer-", user))) {
						refused++
					}
				}
				s.clock.Advance(2 * time.Millisecond)
			}
			s.clock.Advance(time.Minute)
			assert.Positive(t, refused)
			assert.Zero(t, s.gauge("penalised"))
			for user := range 50 {
				assert.True(t, s.call(core.String("user", fmt.Sprint("newcomer-", user))))
			}
		})
	}
}
