package registry

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// env is what calls of the tests need of their engine.
type env struct{}

// found is a registry, and what it has told.
type found struct {
	Registry[env]
	clock *clock.Virtual
	told  []string
	noOne inforce.Plan
}

// newFound returns a registry with space for so many names, under rules for all of them.
func newFound(most int, all ...flow.Rule) *found {
	g := &found{clock: clock.NewVirtual(time.Unix(1_800_000_000, 0))}
	g.Init(Config[env]{
		Env: new(env), Clock: g.clock, Most: most, Overflow: "beyond", NoRules: &g.noOne, Plans: plans{},
		Full: func(name string) { g.told = append(g.told, name) },
	})
	var states []*inforce.State
	var patterns []match.Pattern
	for _, of := range all {
		r := flow.Kind().Of(of).WithDefaults()
		a := inforce.NewRule(r, new(inforce.ForcedState), nil)
		states = append(states, plans{}.NewState(a, r, "beyond", &g.Overflow.Node, 0, g.clock.Now()))
		patterns = append(patterns, a.Pattern.Pattern)
	}
	g.FinishSwap(inforce.NewPatterns(states, match.NewIndex(patterns), 1, nil), func() {})
	return g
}

// call counts a call of a name, which passes.
func (g *found) call(name string) *Resource[env] {
	r := g.Get(name)
	r.Node.Pass(g.clock.Now(), 1)
	r.Node.Done(g.clock.Now(), g.clock.Now(), false)
	return r
}

// names returns those of all resources.
func (g *found) names() (names []string) {
	for _, r := range g.All(g.clock.Now()) {
		names = append(names, r.Name)
	}
	return names
}

// plans makes them as the engine does.
type plans struct{}

func (plans) Planner(resource string, switches *inforce.Switches) inforce.Planner {
	return inforce.Planner{Resource: resource, Switches: switches}
}

func (plans) NewState(of *inforce.Rule, version rule.Rule, resource string, node *leap.Node, _ uint64, now clock.Instant) *inforce.State {
	s := inforce.NewState(of, node.Calls())
	s.Own.Version, s.Own.Limiter.Limiter = version, version.NewLimiter(rule.Env{Now: now, Resource: resource})
	s.Refusals = call.NewTalliedRefusals(node, resource, &of.Key, version)
	return s
}

func someRules(count int) (all []flow.Rule) {
	for i := range count {
		all = append(all, flow.Rule{Name: fmt.Sprint("r", i), Match: "*", Limit: 5})
	}
	return all
}

// However many resources there are, one call looks at a few of them, and all are
// forgotten in the end.
func TestASweepIsDoneInSmallSlices(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const names, ruled = 20_000, 3
	g := newFound(names, someRules(ruled)...)
	for i := range names {
		g.call(fmt.Sprint("n", i))
	}
	assert.Less(t, g.Table.MaxPart(), names/80, "what is copied under the lock")

	g.clock.Advance(2 * time.Minute)
	slices := 0
	for ; g.sweepDue(g.clock.Now()); slices++ {
		require.LessOrEqual(t, slices, names)
		assert.LessOrEqual(t, g.sweepSlice(g.clock.Now()), sweepSize+ruled+1)
	}
	assert.Greater(t, slices, names*(1+ruled)/sweepSize)
	assert.Zero(t, g.count)
	assert.Empty(t, g.Table.All())

	g.call("again") // less than a slice
	g.clock.Advance(2 * time.Minute)
	before := g.sweep.round.AtStart()
	g.call("another")
	assert.Equal(t, before, g.sweep.round.AtStart(), "a whole round")
	assert.False(t, g.sweepDue(g.clock.Now()))
	assert.Equal(t, 1, g.count)
}

// A full registry frees slots slice by slice, as new names come.
func TestAFullRegistryForgetsIdleNamesAsNewOnesCome(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const names = 5000
	g := newFound(names)
	for i := range names + 10 {
		g.call(fmt.Sprint("n", i))
	}
	require.True(t, g.full.Load())
	assert.Equal(t, []string{fmt.Sprint("n", names)}, g.told)
	g.clock.Advance(2 * time.Minute)
	for i := range names {
		g.call(fmt.Sprint("m", i))
	}
	assert.EqualValues(t, 10, g.Overflow.Node.Totals().Passed, "those of before")
}

// What was counted on resources that are forgotten is in the sums, and their names are remembered.
func TestWhatWasCountedOnForgottenResourcesIsKept(t *testing.T) {
	t.Parallel()
	g := newFound(10, someRules(1)...)
	for i := range 5 {
		g.call(fmt.Sprint("n", i))
	}
	g.Get("never called")
	all, forgotten := g.AllAndForgotten(g.clock.Now())
	assert.Len(t, all, 7, "and the one for names without space")
	assert.Zero(t, forgotten)

	g.clock.Advance(2 * time.Minute)
	all, forgotten = g.AllAndForgotten(g.clock.Now())
	assert.Len(t, all, 1)
	assert.EqualValues(t, 5, forgotten.Passed)
	names := g.CalledNames()
	slices.Sort(names)
	assert.Equal(t, []string{"n0", "n1", "n2", "n3", "n4"}, names)
	assert.True(t, g.KnowsCallOf("n3"))
	assert.False(t, g.KnowsCallOf("never called"))
}

// A name that a rule names has a resource however many others there are, and is not forgotten before the rule is gone.
func TestResourcesThatRulesNameStay(t *testing.T) {
	t.Parallel()
	g := newFound(1)
	g.call("only one")
	r := flow.Kind().Of(flow.Rule{Resource: "named", Limit: 5}).WithDefaults()
	a := inforce.NewRule(r, new(inforce.ForcedState), nil)
	g.Attach(a, g.clock.Now())
	named := g.call("named")
	assert.Equal(t, []*inforce.Rule{a}, named.Attached())
	assert.Equal(t, "named", a.Named.Name)

	g.clock.Advance(2 * time.Minute)
	assert.Equal(t, []string{"named", "beyond"}, g.names())

	a.Removed = true
	g.Detach(named)
	assert.Empty(t, named.Attached())
	g.clock.Advance(2 * time.Minute)
	assert.Equal(t, []string{"beyond"}, g.names())
}

// There may be ten thousand resources that rules name.
func TestTheRulesThatNameAResourceTakeLittle(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	assert.LessOrEqual(t, unsafe.Sizeof(attachments{}), uintptr(32))
}
