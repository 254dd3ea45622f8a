package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// loadedPool is an engine with a pool of ten places, at which the clock goes on in steps of 100 ms.
type loadedPool struct {
	t      *testing.T
	engine *core.Engine
	clock  *clock.Virtual
	begun  clock.Instant
	guards []*core.Guard
}

func newLoadedPool(t *testing.T) *loadedPool {
	e, c := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 10}}}))
	return &loadedPool{t: t, engine: e, clock: c, begun: c.Now()}
}

// underWay makes so many calls be under way, of which those beyond ten are refused.
func (p *loadedPool) underWay(calls int) {
	for len(p.guards) > calls {
		p.guards[len(p.guards)-1].Exit()
		p.guards = p.guards[:len(p.guards)-1]
	}
	for len(p.guards) < calls {
		g, err := p.engine.Entry(context.Background(), "r")
		if err != nil {
			require.ErrorIs(p.t, err, core.ErrBlocked)
			return
		}
		p.guards = append(p.guards, &g)
	}
}

// look returns the level.
func (p *loadedPool) look() rule.LoadLevel {
	view, ok := p.engine.View("r")
	require.True(p.t, ok)
	load, _ := core.LoadOf(view)
	return load.Level
}

// during has a number of calls be under way for a time, and returns the levels that come, in order, each
// with when it came.
func (p *loadedPool) during(d time.Duration, calls func(step int) int) (levels []string) {
	before := p.look()
	for step := range int(d / (100 * time.Millisecond)) {
		p.underWay(calls(step))
		p.clock.Advance(100 * time.Millisecond)
		if level := p.look(); level != before {
			before = level
			levels = append(levels, p.clock.Now().Sub(p.begun).String()+" "+level.String())
		}
	}
	return levels
}

func (p *loadedPool) always(calls int) func(int) int { return func(int) int { return calls } }

// ask has a guard asked for the load, so that the resource has a meter.
func (p *loadedPool) ask() *loadedPool {
	p.underWay(1)
	require.Equal(p.t, rule.LoadNone, p.guards[0].Load())
	return p
}

// The instants are those at which 1-exp(-t/1s), times what is measured, passes a step, rounded up to
// a tenth of a second; with exp(-t/5s) on the way down.
func TestLoadOfTenSituations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		calls func(step int) int // in each tenth of a second
		want  []string
	}{
		"idle":            {func(int) int { return 0 }, nil},
		"half of a pool":  {func(int) int { return 5 }, nil},
		"one short burst": {func(step int) int { return map[bool]int{true: 10, false: 1}[step < 3] }, nil},
		"most of a pool":  {func(int) int { return 8 }, []string{"2.1s light"}},
		"a full pool":     {func(int) int { return 10 }, []string{"1.3s light", "2.4s moderate"}},
		"a pool that is full and empty in turn": {
			func(step int) int { return map[bool]int{true: 10, false: 0}[step%2 == 0] }, []string{"2.9s light"},
		},
		"calls that are refused": {
			func(int) int { return 20 }, []string{"500ms light", "600ms moderate", "800ms severe", "1.4s shedding"},
		},
		"shedding that ends": {
			func(step int) int { return map[bool]int{true: 20, false: 0}[step < 30] },
			[]string{
				"500ms light", "600ms moderate", "800ms severe", "1.4s shedding", "4.8s severe", "6s moderate", "7.4s light", "8.8s none",
			},
		},
		"shedding that comes and goes": {
			func(step int) int { return map[bool]int{true: 20, false: 5}[step%20 < 10] }, nil, // checked below
		},
		"calls that come one at a time": {func(int) int { return 1 }, nil},
	} {
		p := newLoadedPool(t).ask()
		levels := p.during(20*time.Second, test.calls)
		if name == "shedding that comes and goes" {
			assert.LessOrEqual(t, len(levels), 8, "%v", levels)
			continue
		}
		assert.Equal(t, test.want, levels, name)
	}
}

func TestLoadReadsWithoutAllocations(t *testing.T) {
	p := newLoadedPool(t).ask()
	var contexts core.CallContexts
	ctx := contexts.New(context.Background(), p.guards[0])
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		g, _ := p.engine.Entry(context.Background(), "r")
		_ = g.Load()
		_ = core.LoadFrom(ctx)
		g.Exit()
		p.clock.Advance(50 * time.Millisecond)
	}))
}

func TestLoadOfTheEngineIsTheHighestOfThoseThatWereAsked(t *testing.T) {
	t.Parallel()
	p := newLoadedPool(t)
	_, asked := p.engine.PresentLoad()
	assert.False(t, asked)
	p.clock.Advance(time.Second)
	p.ask()
	p.during(10*time.Second, p.always(10))
	load, asked := p.engine.PresentLoad()
	assert.True(t, asked)
	assert.InDelta(t, 1, load.Utilization, 0.001)
	assert.Equal(t, rule.LoadModerate, load.Level)
	var contexts core.CallContexts
	assert.Equal(t, rule.LoadModerate, core.LoadFrom(contexts.New(context.Background(), p.guards[0])))
	p.clock.Advance(2 * time.Minute)
	_, asked = p.engine.PresentLoad()
	assert.False(t, asked, "nobody asks any more")
}

func TestLoadOfAThrottleIsHowLongCallsWait(t *testing.T) {
	t.Parallel()
	e, c := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1, Algorithm: flow.Throttle, MaxWait: 10 * time.Second}}}))
	g, err := e.Entry(context.Background(), "r")
	require.NoError(t, err)
	assert.Equal(t, rule.LoadNone, g.Load())
	g.Exit()
	c.Advance(time.Minute)
	view, _ := e.View("r")
	load, ok := core.LoadOf(view)
	assert.True(t, ok)
	assert.InDelta(t, 0, load.Utilization, 0.001)
}

func TestContextWithoutALoadHasNone(t *testing.T) {
	t.Parallel()
	var none core.Guard
	assert.Equal(t, rule.LoadNone, none.Load())
	assert.Equal(t, rule.LoadNone, core.LoadFrom(context.Background()))
}

func TestLevelsSayWhichWorkBegins(t *testing.T) {
	t.Parallel()
	assert.True(t, rule.LoadLight.Begins(rule.PrioritySheddable))
	assert.False(t, rule.LoadModerate.Begins(rule.PrioritySheddable))
	assert.True(t, rule.LoadModerate.Begins(rule.PriorityLow))
	assert.False(t, rule.LoadSevere.Begins(rule.PriorityLow))
	assert.True(t, rule.LoadShedding.Begins(rule.PriorityNormal))
}
