package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// described returns a recorded call with its names, and its attributes as they are.
func described(r *recording.Recording, c recording.Call) string {
	text := fmt.Sprintf("%v %s", c.At.Sub(clock.Instant(begin.UnixNano())), r.Resources[c.Resource])
	text += fmt.Sprintf(" %s tokens=%d priority=%d flags=%b", [...]string{"passed", "refused", "gave up"}[c.Outcome], c.Tokens, c.Priority, flagsOf(c))
	if c.Outcome == recording.Refused {
		text += fmt.Sprintf(" by %s %s", r.Rules[c.Rule].Kind, r.Rules[c.Rule].Name)
	}
	if c.Origin != 0 {
		text += " origin=" + r.Origins[c.Origin]
	}
	if c.Wait != 0 || c.Patience != 0 {
		text += fmt.Sprintf(" wait=%v of %v", c.Wait, c.Patience)
	}
	if c.Outcome == recording.Passed {
		text += fmt.Sprintf(" took %v", c.Duration)
	}
	if c.SettledAfter >= 0 {
		text += fmt.Sprintf(" settled %d after %v", c.Settled, c.SettledAfter)
	}
	for _, a := range r.AttributesOf(&c) {
		text += fmt.Sprintf(" %s=%#v", r.Keys[a.Key], r.Values[a.Value])
	}
	return text
}

func descriptions(r *recording.Recording) (texts []string) {
	for _, c := range r.Calls {
		texts = append(texts, described(r, c))
	}
	return texts
}

func TestRecorderHasWhatCallsAskedForAndWhatBecameOfThem(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: &core.Recorder{Values: true}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{
		Flow:      []flow.Rule{{Name: "window", Resource: "w", Limit: 2}, {Name: "tokens", Resource: "t", Limit: 100}},
		Isolation: []isolation.Rule{{Name: "places", Resource: "i", Limit: 1}},
		Breaker:   []breaker.Rule{{Name: "errors", Resource: "b", Threshold: 0.5}},
		HotParam:  []hotparam.Rule{{Name: "users", Resource: "h", Limit: 1, Param: rule.StringsOf("user", "beta")}},
	}))
	call := func(name string, end func(*core.Guard), opts ...core.Option) {
		guard, err := e.Entry(t.Context(), name, opts...)
		c.Advance(time.Millisecond)
		if err == nil {
			end(&guard)
			guard.Exit()
		}
		c.Advance(time.Millisecond)
	}
	none := func(*core.Guard) {}
	call("free", none)
	call("w", none, core.Origin("mobile"), core.Inbound(), core.Priority(rule.PriorityLow))
	call("w", none, core.NoWait())
	call("w", none, core.Tokens(7), core.LongLived())
	call("i", none, core.LongLived())
	call("i", func(g *core.Guard) { g.MarkLongLived() })
	call("b", func(g *core.Guard) { g.MarkFailed() })
	call("b", func(g *core.Guard) { g.MarkIgnored() })
	call("b", func(g *core.Guard) { g.Cancel() })
	call("t", func(g *core.Guard) { g.Settle(3); c.Advance(time.Millisecond); g.Settle(5) }, core.Tokens(2))
	call("h", none, core.String("user", "alice"), core.Bool("beta", true), core.String("unread", "x"))
	call("h", none, core.String("user", "alice"), core.Bool("beta", true))
	call("h", none, core.Int("user", -7), core.Bool("beta", false))
	underWay, err := e.Entry(t.Context(), "free")
	require.NoError(t, err)
	defer underWay.Exit()

	got, err := e.Recorded(time.Minute)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"0s free passed tokens=1 priority=0 flags=0 took 1ms",
		"2ms w passed tokens=1 priority=-1 flags=1 origin=mobile took 1ms",
		"4ms w passed tokens=1 priority=0 flags=10 took 1ms",
		"6ms w refused tokens=7 priority=0 flags=100 by flow window",
		"8ms i passed tokens=1 priority=0 flags=100 took 1ms",
		"10ms i passed tokens=1 priority=0 flags=100 took 1ms",
		"12ms b passed tokens=1 priority=0 flags=1000 took 1ms",
		"14ms b passed tokens=1 priority=0 flags=10000 took 1ms",
		"16ms b passed tokens=1 priority=0 flags=100000 took 1ms",
		"18ms t passed tokens=2 priority=0 flags=0 took 2ms settled 5 after 2ms",
		`21ms h passed tokens=1 priority=0 flags=0 took 1ms user="alice" beta=true`,
		`23ms h refused tokens=1 priority=0 flags=0 by hotParam users user="alice" beta=true`,
		`25ms h passed tokens=1 priority=0 flags=0 took 1ms user=-7 beta=false`,
		"27ms free passed tokens=1 priority=0 flags=0 took -1ns",
	}, descriptions(got))
	assert.Equal(t, []recording.Instance{{From: clock.Instant(begin.UnixNano()), Until: c.Now()}}, got.Instances)

	got, err = e.Recorded(5 * time.Millisecond)
	require.NoError(t, err)
	assert.Len(t, got.Calls, 3)
}

func TestRecorderHasWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet, Recorder: &core.Recorder{}})
		defer e.Close()
		load(t, e, throttle("slow", 1, 1500*time.Millisecond))
		require.Equal(t, 1, enter(e, "slow", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := e.Entry(ctx, "slow")
		cancel()
		require.ErrorIs(t, err, core.ErrBlocked)
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(400*time.Millisecond, func() { stop(errors.New("gone")) })
		_, err = e.Entry(ctx, "slow")
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, enter(e, "slow", 1))
		got, err := e.Recorded(time.Minute)
		require.NoError(t, err)
		require.Len(t, got.Calls, 4)
		assert.Equal(t, []recording.Outcome{recording.Passed, recording.Refused, recording.GaveUp, recording.Passed}, []recording.Outcome{
			got.Calls[0].Outcome, got.Calls[1].Outcome, got.Calls[2].Outcome, got.Calls[3].Outcome,
		})
		assert.Equal(t, 500*time.Millisecond, got.Calls[1].Patience.Round(time.Millisecond))
		assert.Equal(t, 400*time.Millisecond, got.Calls[2].Wait)
		assert.Equal(t, 600*time.Millisecond, got.Calls[3].Wait)
	})
}

// Two of an engine's recordings have the same hash for a value, and nothing has the value.
func TestRecorderHashesValues(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: &core.Recorder{}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{HotParam: []hotparam.Rule{{Name: "users", Resource: "h", Limit: 1, Param: rule.StringsOf("user")}}}))
	for _, o := range []core.Option{
		core.String("user", "alice"), core.String("user", "7"), core.Int("user", 7), core.Bool("user", true), core.Bool("user", false),
		core.String("user", "alice"),
	} {
		_, _ = e.Entry(t.Context(), "h", o)
		c.Advance(time.Nanosecond) // those of one instant may be in any order
	}
	got, err := e.Recorded(time.Minute)
	require.NoError(t, err)
	require.True(t, got.Hashed)
	assert.Empty(t, got.Values)
	different := map[uint64]bool{}
	for i := range 5 {
		different[got.AttributesOf(&got.Calls[i])[0].Value] = true
	}
	assert.Len(t, different, 5)
	assert.Equal(t, got.AttributesOf(&got.Calls[0]), got.AttributesOf(&got.Calls[5]))
	again, err := e.Recorded(time.Minute)
	require.NoError(t, err)
	assert.Equal(t, got.Calls, again.Calls)
}

// The memory is a ring: the latest calls are there, all of them from the instant that the recording names.
func TestRecorderKeepsTheLatestCalls(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: &core.Recorder{Memory: 1}})
	defer e.Close()
	const calls = 200_000
	for range calls {
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		c.Advance(time.Microsecond)
		guard.Exit()
		c.Advance(time.Microsecond)
	}
	got, err := e.Recorded(time.Hour)
	require.NoError(t, err)
	require.NotEmpty(t, got.Calls)
	require.Less(t, len(got.Calls), calls/2)
	assert.Equal(t, c.Now().Add(-2*time.Microsecond), got.Calls[len(got.Calls)-1].At)
	assert.Less(t, got.Calls[0].At.Sub(got.Instances[0].From), 2*time.Microsecond)
	for i, call := range got.Calls {
		require.Equal(t, time.Microsecond, call.Duration, i)
		require.Equal(t, got.Calls[0].At.Add(time.Duration(i)*2*time.Microsecond), call.At)
	}
}

func TestRecorderCountsNamesBeyondItsTablesAsOthers(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: &core.Recorder{}})
	defer e.Close()
	for i := range 5000 {
		c.Advance(time.Nanosecond)
		enter1(t, e, "r", core.Origin(fmt.Sprint("origin ", i)))
	}
	got, err := e.Recorded(time.Minute)
	require.NoError(t, err)
	require.Len(t, got.Origins, 1<<12)
	assert.Equal(t, recording.Other, got.Origins[got.Calls[4999].Origin])
	assert.Equal(t, "origin 4000", got.Origins[got.Calls[4000].Origin])
}

func enter1(t *testing.T, e *core.Engine, name string, opts ...core.Option) {
	t.Helper()
	guard, err := e.Entry(t.Context(), name, opts...)
	require.NoError(t, err)
	guard.Exit()
}

// While somebody records, calls are recorded, and not before or after.
func TestRecordingByHandEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		_, err := e.Recorded(time.Minute)
		require.ErrorIs(t, err, core.ErrNotRecording)
		enter1(t, e, "before")
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				got, err := e.Record(t.Context(), time.Duration(i+1)*time.Second)
				assert.NoError(t, err)
				assert.Len(t, got.Calls, i+1)
			})
		}
		synctest.Wait()
		time.Sleep(time.Millisecond)
		enter1(t, e, "r")
		time.Sleep(1500 * time.Millisecond)
		enter1(t, e, "r")
		both.Wait()
		_, err = e.Recorded(time.Minute)
		require.ErrorIs(t, err, core.ErrNotRecording)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.Record(ctx, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		time.AfterFunc(time.Second, e.Close)
		_, err = e.Record(t.Context(), time.Hour)
		require.ErrorIs(t, err, core.ErrClosed)
	})
}

// Any number of goroutines record, while others read: every call is there once, with its end.
func TestRecorderLosesNoCallOfManyGoroutines(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, Recorder: &core.Recorder{}})
	defer e.Close()
	load(t, e, flow.Rule{Name: "none", Resource: "none", Limit: 0})
	goroutines, calls := 16, longtest.Short(2000, 400)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range calls {
				if i%4 == 3 {
					_, _ = e.Entry(context.Background(), "none")
				} else {
					guard, _ := e.Entry(context.Background(), fmt.Sprint("r", g))
					guard.Exit()
				}
				if i%500 == 0 {
					_, err := e.Recorded(time.Hour)
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
	got, err := e.Recorded(time.Hour)
	require.NoError(t, err)
	passed, refused := 0, 0
	for _, c := range got.Calls {
		if c.Outcome == recording.Refused {
			refused++
			continue
		}
		passed++
		require.GreaterOrEqual(t, c.Duration, time.Duration(0))
	}
	assert.Equal(t, goroutines*calls*3/4, passed)
	assert.Equal(t, goroutines*calls/4, refused)
}

func TestRecordingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e := core.New(core.Config{Logger: quiet, Recorder: &core.Recorder{Values: true}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{
		Flow:     []flow.Rule{{Resource: "w", Limit: flow.MaxLimit}, {Name: "closed", Resource: "closed"}},
		HotParam: []hotparam.Rule{{Name: "users", Resource: "h", Limit: 1e6, Param: rule.StringsOf("user")}},
	}))
	for _, name := range []string{"free", "w", "h", "closed"} {
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			guard, err := e.Entry(context.Background(), name, core.Origin("mobile"), core.Int("user", 7))
			if err == nil {
				guard.Exit()
			}
		}), name)
	}
}

// BenchmarkRecording compares calls of an engine that records with those of one that does not, in turn.
func BenchmarkRecording(b *testing.B) {
	for _, of := range []flow.Rule{{Resource: "other"}, {Resource: "r", Limit: flow.MaxLimit}, {Resource: "r"}} {
		b.Run(fmt.Sprintf("rule of %s with limit %v", of.Resource, of.Limit), func(b *testing.B) {
			engines := map[string]*core.Engine{
				"off": core.New(core.Config{Logger: quiet}), "on": core.New(core.Config{Logger: quiet, Recorder: &core.Recorder{}}),
			}
			least := map[string]time.Duration{}
			for _, e := range engines {
				defer e.Close()
				load(b, e, of)
			}
			const calls = 2000
			for b.Loop() {
				for name, e := range engines {
					start := time.Now()
					for range calls {
						if guard, err := e.Entry(context.Background(), "r"); err == nil {
							guard.Exit()
						}
					}
					if took := time.Since(start); least[name] == 0 || took < least[name] {
						least[name] = took
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			for name, took := range least {
				b.ReportMetric(float64(took.Nanoseconds())/calls, name+"-ns/call")
			}
		})
	}
}

// The end of a call is there whatever its guard carries.
func TestRecorderHasTheEndsOfCallsOfManyTokens(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Recorder: &core.Recorder{}})
	defer e.Close()
	for _, settled := range []int{1, 3, 255, 256, 1 << 20} {
		guard, err := e.Entry(t.Context(), "r", core.Tokens(settled))
		require.NoError(t, err)
		c.Advance(time.Millisecond)
		guard.Exit()
	}
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: flow.MaxLimit}}}))
	for _, settled := range []int{1, 3, 255, 256, 1 << 20} {
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		guard.Settle(settled)
		if settled == 3 {
			guard.MarkLongLived()
		}
		c.Advance(time.Millisecond)
		guard.Exit()
	}
	got, err := e.Recorded(time.Minute)
	require.NoError(t, err)
	require.Len(t, got.Calls, 10)
	for i, call := range got.Calls {
		assert.Equal(t, time.Millisecond, call.Duration, i)
		assert.Equal(t, i == 6, call.LongLived, i)
	}
}

// flagsOf returns what is true of a call as bits.
func flagsOf(c recording.Call) (flags uint8) {
	for i, is := range []bool{c.Inbound, c.NoWait, c.LongLived, c.Failed, c.Ignored, c.Cancelled} {
		if is {
			flags |= 1 << i
		}
	}
	return flags
}
