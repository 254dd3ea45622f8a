package simulate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// lottery is a rule of a kind that refuses calls at random. It looks at two attributes.
type lottery struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

// lotteryKind returns the kind. It calls saw with the seed of each limiter and the
// attribute of each call.
func lotteryKind(saw func(seed uint64, attribute string)) *rule.Type[lottery] {
	common := func(l *lottery) rule.Common {
		return rule.Common{Name: &l.Name, Resource: &l.Resource, Match: &l.Match, Origin: &l.Origin, Shared: &l.Shared, Shadow: &l.Shadow}
	}
	return rule.Define(rule.Spec[lottery]{
		Kind: "lottery", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common,
		Attributes: func(*lottery) []string { return []string{"tenant", "paid"} },
		New: func(_ *lottery, env rule.Env) rule.Limiter {
			return &lotteryLimiter{env.Seed, rand.New(rand.NewPCG(env.Seed, 0)), saw}
		},
	})
}

type lotteryLimiter struct {
	seed   uint64
	random *rand.Rand
	saw    func(uint64, string)
}

func (l *lotteryLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	l.saw(l.seed, c.Attribute.String())
	if l.random.IntN(2) == 0 {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (l *lotteryLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (l *lotteryLimiter) RetryAfter(rule.Call) time.Duration         { return 0 }
func (l *lotteryLimiter) Status(clock.Instant) rule.Status           { return rule.Status{} }
func (l *lotteryLimiter) Idle(clock.Instant) bool                    { return false }

// draw returns the outcomes of 64 calls that a lottery decides on, what it saw of them,
// and its seed.
func draw(t *testing.T, seed uint64) (outcomes, attributes []string, limiterSeed uint64) {
	t.Helper()
	kind := lotteryKind(func(seed uint64, attribute string) {
		limiterSeed = seed
		attributes = append(attributes, attribute)
	})
	load := streams(simulate.Stream{Rate: 64, Until: time.Second, Attrs: []simulate.Attr{
		{Name: "paid", Values: []any{true, false}}, {Name: "tenant", Values: []any{"a", 7}},
	}})
	load.Seed = seed
	result, err := simulate.Run(t.Context(), rules.Set{Custom: []rule.Rule{kind.Of(lottery{Resource: "r"})}}, load,
		simulate.Options{Events: true, Kinds: []rule.Definition{kind}})
	require.NoError(t, err)
	for _, e := range result.Events {
		outcomes = append(outcomes, e.Outcome)
	}
	return outcomes, attributes, limiterSeed
}

func TestWhatLimitersChooseAtRandomFollowsFromTheSeed(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 1, 7, 1<<64 - 1} {
		first, _, limiterSeed := draw(t, seed)
		again, _, _ := draw(t, seed)
		assert.Equal(t, first, again)
		assert.NotZero(t, limiterSeed, "0 would be a seed at random")
		other, _, otherSeed := draw(t, seed+2)
		assert.NotEqual(t, first, other)
		assert.NotEqual(t, limiterSeed, otherSeed)
	}
}

func TestRulesSeeTheAttributesThatTheyAskFor(t *testing.T) {
	t.Parallel()
	_, attributes, _ := draw(t, 0)
	assert.Equal(t, []string{"a/true", "7/false", "a/true", "7/false"}, attributes[:4])
}

// A rule that keeps fewer values than there are chooses where it keeps them.
func TestTheSameSeedGivesTheSameResultForMoreValuesThanARuleKeeps(t *testing.T) {
	t.Parallel()
	set := rules.Set{HotParam: []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 2, MaxValues: 100}}}
	result := func(seed uint64) string {
		load := streams(simulate.Stream{Rate: 10_000, Until: 2 * time.Second, Attrs: []simulate.Attr{{Name: "user", Count: 1000}}})
		load.Seed = seed
		return marshal(t, run(t, set, load, 0))
	}
	first := result(1)
	assert.Equal(t, first, result(1))
	assert.NotEqual(t, first, result(2))
}
