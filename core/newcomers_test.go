package core_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
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

// flood is an attack on a rule by values that somebody invents, 400 a second, while honest callers
// come from elsewhere, each for the first time.
type flood struct {
	rule    hotparam.Rule
	invent  func(i int) []core.Option
	arrive  func(i int) []core.Option
	tries   int // of each invented value
	begin   time.Duration
	lasts   time.Duration
	refused int // of honest calls
	calls   int
	log     bytes.Buffer
	engine  *core.Engine
}

func (f *flood) run(t *testing.T) {
	at := clock.NewVirtual(begin)
	f.engine = core.New(core.Config{Clock: at, Logger: slog.New(slog.NewTextHandler(&f.log, nil)), Seed: 1})
	defer f.engine.Close()
	f.rule.Name, f.rule.Resource = "per-value", "login"
	require.NoError(t, f.engine.Load(rules.Set{HotParam: []hotparam.Rule{f.rule}}))
	const perSecond = 400
	for i := range int(f.lasts.Seconds()) * perSecond {
		at.Advance(time.Second / perSecond)
		options := f.invent(i)
		for range f.tries {
			f.enter(options)
		}
		if since := time.Duration(i) * time.Second / perSecond; i%(perSecond/2) == 0 && since >= f.begin {
			f.calls++
			if !f.enter(f.arrive(i)) {
				f.refused++
			}
		}
	}
}

func (f *flood) enter(options []core.Option) bool {
	guard, err := f.engine.Entry(context.Background(), "login", options...)
	if err != nil {
		return false
	}
	guard.Exit()
	return true
}

func TestCallsWithoutASlotAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	at := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: at, Logger: slog.New(slog.DiscardHandler), Seed: 1})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "r", Resource: "login", Param: rule.StringsOf("user"), Limit: 1, Window: time.Hour, MaxValues: 200_000},
	}}))
	calls := make([][]core.Option, 400_000)
	for i := range calls {
		calls[i] = newcomer(i)
	}
	var passed, refused int
	i := 0
	enter := func() {
		guard, err := e.Entry(context.Background(), "login", calls[i%len(calls)]...)
		if i++; err != nil {
			refused++
			return
		}
		passed++
		guard.Exit()
	}
	for i < 350_000 { // it has grown
		enter()
	}
	passed, refused = 0, 0
	assert.Zero(t, testing.AllocsPerRun(10_000, enter))
	assert.Positive(t, passed)
	assert.Positive(t, refused)
	gauges := e.Snapshot().Resources[0].Rules[0].Gauges
	assert.Positive(t, gauges[3], "without slot")
	assert.InDelta(t, 200_000*15, gauges[6], 400_000, "bytes")
}

func fromSixteen(i int) []core.Option {
	return []core.Option{core.String("user", fmt.Sprint("x", i)), core.String("ip", fmt.Sprintf("203.0.%d.%d", i>>8&0xFF, i&0xFF))}
}

func newcomer(i int) []core.Option {
	random := rand.New(rand.NewPCG(1, uint64(i)))
	return []core.Option{
		core.String("user", fmt.Sprint("honest", i)),
		core.String("ip", fmt.Sprintf("%d.%d.%d.%d", 1+random.IntN(100), random.IntN(256), random.IntN(256), random.IntN(256))),
	}
}

func TestNewcomersFromElsewherePassWhileSomebodyInventsValues(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	ipv6 := func(i int) []core.Option { // each from a network of its own
		return []core.Option{core.String("ip", fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xFFFF))}
	}
	for name, f := range map[string]*flood{
		"default size": {rule: hotparam.Rule{Limit: 5, Window: time.Hour}, tries: 1, begin: 4 * time.Minute, lasts: 8 * time.Minute},
		"default size, all tokens": {
			rule: hotparam.Rule{Limit: 5, Window: 5 * time.Minute}, tries: 5, begin: 4 * time.Minute, lasts: 6 * time.Minute,
		},
		"token bucket":   {rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000}, tries: 5, lasts: 3 * time.Minute},
		"one at once":    {rule: hotparam.Rule{Limit: 1, Window: time.Hour, MaxValues: 30_000}, tries: 1, lasts: 3 * time.Minute},
		"sliding window": {rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000, Algorithm: hotparam.SlidingWindow}, tries: 5, lasts: 3 * time.Minute},
		"throttle":       {rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000, Algorithm: hotparam.Throttle}, tries: 2, lasts: 3 * time.Minute},
		"waiting": {
			rule:  hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000, Algorithm: hotparam.Throttle, MaxWait: time.Nanosecond},
			tries: 2, lasts: 3 * time.Minute,
		},
		"IPv6 networks": {
			rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000, Param: rule.StringsOf("ip")}, tries: 5, lasts: 3 * time.Minute, invent: ipv6,
		},
		"origins": {
			rule: hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000}, tries: 5, lasts: 3 * time.Minute,
			invent: func(i int) []core.Option { return []core.Option{core.String("user", fmt.Sprint(i)), core.Origin("a")} },
			arrive: func(i int) []core.Option { return []core.Option{core.String("user", fmt.Sprint(-i)), core.Origin("b")} },
		},
		"two attributes": {
			rule:  hotparam.Rule{Limit: 5, Window: time.Hour, MaxValues: 30_000, Param: rule.StringsOf("user", "ip")},
			tries: 5, lasts: 3 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f.rule.Param.Len() == 0 {
				f.rule.Param = rule.StringsOf("user")
			}
			if f.invent == nil {
				f.invent = fromSixteen
			}
			if f.arrive == nil {
				f.arrive = newcomer
			}
			f.run(t)
			t.Logf("%d of %d calls refused; %s", f.refused, f.calls, f.log.String())
			assert.LessOrEqual(t, f.refused, f.calls/100)
			told := strings.Count(f.log.String(), "more values are in use than the rule keeps")
			if f.rule.MaxValues == 0 {
				assert.Zero(t, told, "the table has grown")
			} else {
				assert.Equal(t, 1, told)
				assert.Contains(t, f.log.String(), "rule=per-value")
			}
		})
	}
}
