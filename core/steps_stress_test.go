package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// counting is a finisher that counts atomically: what a real kind costs at least.
type counting struct{ given, back, ended atomic.Int64 }

func (l *counting) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	return rule.Ticket(l.given.Add(1)), rule.Pass
}

func (l *counting) GiveBack(clock.Instant, rule.Ticket, int32) { l.back.Add(1) }
func (l *counting) Done(rule.Ticket, rule.Exit)                { l.ended.Add(1) }
func (l *counting) RetryAfter(rule.Call) time.Duration         { return 0 }
func (l *counting) Status(clock.Instant) rule.Status           { return rule.Status{} }
func (l *counting) Idle(clock.Instant) bool                    { return false }

// refusing is a limiter that refuses all calls.
type refusing struct{ counting }

func (*refusing) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Block }
func (*refusing) RetryAfter(rule.Call) time.Duration             { return time.Second }

// Whatever becomes of calls that wait, are refused, cancelled, stale or panic: what
// they took is given back, or done, once.
func TestEveryTicketComesBackOnce(t *testing.T) {
	e := core.New(core.Config{Logger: quiet})
	defer e.Close()
	first, last := &counting{}, &counting{}
	pool := &places{limit: 3, maxWait: time.Minute}
	var under, most atomic.Int64
	unsteady := &unsteady{}
	e.Impose("r",
		imposed(rule.PhaseAccess, rule.Denied, toyConfig{Name: "first"}, first),
		imposed(rule.PhaseConcurrency, rule.Overloaded, toyConfig{Name: "pool"}, pool),
		imposed(rule.PhaseRate, rule.Overloaded, toyConfig{Name: "unsteady"}, unsteady),
		imposed(rule.PhaseRate, rule.Overloaded, toyConfig{Name: "zlast"}, last),
		imposedFlow(flow.Rule{Name: "throttle", Limit: 1e6, Algorithm: flow.Throttle, MaxWait: time.Minute}, e.Clock().Now()),
		imposedFlow(flow.Rule{Name: "window", Limit: 20_000}, e.Clock().Now()))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 200 {
				func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithCancel(context.Background())
					if rand.IntN(4) == 0 {
						go cancel()
					}
					defer cancel()
					guard, err := e.Entry(ctx, "r")
					if err != nil {
						assert.True(t, errors.Is(err, core.ErrBlocked) || errors.Is(err, context.Canceled), "%v", err)
						return
					}
					defer guard.Exit()
					now := under.Add(1)
					for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
					}
					under.Add(-1)
					if rand.IntN(50) == 0 {
						panic("in the guarded code")
					}
				}()
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.Zero(t, pool.taken)
	assert.Empty(t, pool.waiting)
	s := e.Resource("r").Snapshot()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Waiting)
	assert.NotZero(t, s.Passed)
	for name, l := range map[string]*counting{"first": first, "last": last} {
		assert.Equal(t, l.given.Load(), l.back.Load()+l.ended.Load(), name)
		assert.EqualValues(t, s.Passed, l.ended.Load(), name)
	}
}

// unsteady is a limiter that is stale now and then, and panics now and then.
type unsteady struct{ counting }

func (l *unsteady) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	switch rand.IntN(20) {
	case 0:
		return 0, rule.Stale
	case 1:
		panic("oops")
	case 2:
		return 0, rule.Block
	}
	return l.counting.Acquire(c)
}

// steps returns n rules that let all calls pass, or whose last refuses them.
func steps(n int, refuse bool) (rules []core.Imposed) {
	for i := range n {
		var l rule.Limiter = &counting{}
		if refuse && i == n-1 {
			l = &refusing{}
		}
		rules = append(rules, imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: fmt.Sprint(i), Attributes: "user"}, l))
	}
	return rules
}

func TestNoCallThroughStepsAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, c := newEngine(t)
	shadow := imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: "shadow", Shadow: true}, &refusing{})
	tests := map[string][]core.Imposed{
		"one": steps(1, false), "two": steps(2, false), "eight": steps(8, false),
		"one refuses": steps(1, true), "two refuse": steps(2, true), "eight refuse": steps(8, true),
		"with a window":  append(steps(2, false), imposedFlow(flow.Rule{Limit: 1e9}, c.Now())),
		"window refuses": append(steps(2, false), imposedFlow(flow.Rule{Limit: 0}, c.Now())),
		"with a queue":   append(steps(2, false), imposedFlow(throttle("r", 1e9, 0), c.Now())),
		"shadow":         append(steps(2, false), shadow),
		"place":          {toyRule("pool", &places{limit: 1, maxWait: time.Hour})},
		"no place":       {toyRule("pool", &places{limit: 0, maxWait: time.Hour})},
		"throttle":       {imposedFlow(throttle("r", 1e-3, time.Hour), c.Now())},
	}
	for name, rules := range tests {
		e.Impose("r", rules...)
		user := "user " + name
		assert.Zero(t, testing.AllocsPerRun(200, func() {
			c.Advance(1000)
			guard, _ := e.Entry(context.Background(), "r", core.NoWait(), core.String("user", user), core.Int("n", 7))
			guard.Settle(3)
			guard.Exit()
		}), name)
	}
}

// BenchmarkSteps is a call that rules of other kinds than flow apply to.
func BenchmarkSteps(b *testing.B) {
	now := clock.System().Now()
	window := imposedFlow(flow.Rule{Limit: flow.MaxLimit}, now)
	shadow := imposed(rule.PhaseHealth, rule.Unavailable, toyConfig{Name: "shadow", Shadow: true}, &counting{})
	for _, test := range []struct {
		name  string
		rules []core.Imposed
	}{
		{"none", nil},
		{"window", []core.Imposed{window}},
		{"one", steps(1, false)},
		{"two", steps(2, false)},
		{"eight", steps(8, false)},
		{"one, window", append(steps(1, false), window)},
		{"two, window", append(steps(2, false), window)},
		{"one refuses", steps(1, true)},
		{"two, the second refuses", steps(2, true)},
		{"shadow", []core.Imposed{shadow}},
	} {
		b.Run(test.name, func(b *testing.B) {
			engine := core.New(core.Config{Clock: &free{clock.System(), now}, Logger: quiet})
			defer engine.Close()
			engine.Impose("r", test.rules...)
			b.ReportAllocs()
			for b.Loop() {
				if guard, err := engine.Entry(context.Background(), "r"); err == nil {
					guard.Exit()
				}
			}
		})
	}
}

// BenchmarkStepsEntry is the entry alone, of many calls that are under way at once.
func BenchmarkStepsEntry(b *testing.B) {
	now := clock.System().Now()
	for _, test := range []struct {
		name  string
		rules []core.Imposed
	}{{"none", nil}, {"one", steps(1, false)}, {"two", steps(2, false)}} {
		engine := core.New(core.Config{Clock: &free{clock.System(), now}, Logger: quiet})
		defer engine.Close()
		engine.Impose("r", test.rules...)
		handle := engine.Resource("r")
		guards := make([]core.Guard, 1000)
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == len(guards) {
					b.StopTimer()
					for k := range guards {
						guards[k].Exit()
					}
					i = 0
					b.StartTimer()
				}
				guards[i], _ = handle.Entry(context.Background())
			}
			for k := range guards {
				guards[k].Exit()
			}
		})
	}
}
