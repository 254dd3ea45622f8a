package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
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
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// foreign is code of the program that fails at one place: it panics, or ends its goroutine.
type foreign struct {
	fail func()
	at   atomic.Pointer[string] // nil: it does not fail
}

// in is called wherever the code runs.
func (f *foreign) in(place string) {
	if at := f.at.Load(); at != nil && *at == place {
		f.at.Store(nil) // once
		f.fail()
	}
}

// run runs fn in a goroutine whose panics end there, and reports whether it has returned.
func (f *foreign) run(place string, fn func()) (returned bool) {
	f.at.Store(&place)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		fn()
		returned = true
	}()
	<-done
	f.at.Store(nil)
	return returned
}

// eachFailure runs a test for both ways in which code does not return.
func eachFailure(t *testing.T, test func(t *testing.T, f *foreign)) {
	t.Helper()
	for name, fail := range map[string]func(){"panic": func() { panic("foreign") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) { test(t, &foreign{fail: fail}) })
	}
}

// foreignLimiter is one of a kind that the program has.
type foreignLimiter struct {
	*foreign
	decision rule.Decision
	out      atomic.Int64 // tickets
}

func (l *foreignLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.in("Acquire")
	if l.decision == rule.Pass {
		l.out.Add(1)
	}
	return 0, l.decision
}

func (l *foreignLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {
	l.out.Add(-1)
	l.in("GiveBack")
}

func (l *foreignLimiter) Done(rule.Ticket, rule.Exit) {
	l.out.Add(-1)
	l.in("Done")
}

func (l *foreignLimiter) CountPass(clock.Instant, int32) { l.in("CountPass") }

func (l *foreignLimiter) RetryAfter(rule.Call) time.Duration {
	l.in("RetryAfter")
	return 0
}

func (l *foreignLimiter) Status(clock.Instant) rule.Status {
	l.in("Status")
	return rule.Status{}
}

func (l *foreignLimiter) Idle(clock.Instant) bool { return l.out.Load() == 0 }

// foreignKind has limiters that fail where f does.
func foreignKind(f *foreign, phase rule.Phase, decision rule.Decision) *rule.Type[toyConfig] {
	common := func(c *toyConfig) rule.Common {
		return rule.Common{
			Name: &c.Name, Resource: &c.Resource, Match: &c.Match, Shared: &c.Shared, Origin: &c.Origin, Shadow: &c.Shadow,
			Related: &c.Related,
		}
	}
	return rule.Define(rule.Spec[toyConfig]{
		Kind: "foreign", Phase: phase, Reason: rule.Overloaded, Common: common,
		New: func(c *toyConfig, _ rule.Env) rule.Limiter {
			f.in("New")
			f.in("New of " + c.Name)
			return &foreignLimiter{foreign: f, decision: decision}
		},
	})
}

// foreignClock is a clock of the program.
type foreignClock struct {
	*clock.Virtual
	*foreign
}

func (c foreignClock) Now() clock.Instant {
	c.in("Now")
	return c.Virtual.Now()
}

// places are how many calls of "r" can be under way, and tokens how many can pass in a minute.
const foreignPlaces, foreignTokens = 2, 10

// holdsNothing asserts that all places and tokens of "r" are there, but for the tokens that were used.
func holdsNothing(t *testing.T, e *core.Engine, used int) {
	t.Helper()
	of := e.Resource("r").Snapshot()
	assert.Zero(t, of.InFlight)
	assert.Zero(t, of.Waiting)
	var guards [foreignPlaces]core.Guard
	for i := range guards {
		var err error
		guards[i], err = e.Entry(t.Context(), "r", core.NoWait())
		assert.NoError(t, err)
	}
	for i := range guards {
		guards[i].Exit()
	}
	left := foreignTokens - used - foreignPlaces
	assert.Equal(t, left, enter(e, "r", left+1, core.NoWait()), "tokens")
}

func foreignSet(extra ...rule.Rule) rules.Set {
	return rules.Set{
		Isolation: []isolation.Rule{{Resource: "r", Limit: foreignPlaces}},
		Flow:      []flow.Rule{{Resource: "r", Limit: foreignTokens, Window: time.Minute}},
		Custom:    extra,
	}
}

func TestCallThatALimiterOfTheProgramFailsHoldsNothing(t *testing.T) {
	for _, test := range []struct {
		place    string
		phase    rule.Phase
		decision rule.Decision
		of       toyConfig
		used     int
	}{
		{"Acquire", rule.PhaseRate, rule.Pass, toyConfig{}, 0},
		{"Acquire", rule.PhaseAccess, rule.Pass, toyConfig{}, 0},
		{"Acquire", rule.PhaseRate, rule.Pass, toyConfig{Shadow: true}, 0},
		{"RetryAfter", rule.PhaseRate, rule.Block, toyConfig{Shadow: true}, 0},
		{"RetryAfter", rule.PhaseRate, rule.Block, toyConfig{}, 0},
		{"CountPass", rule.PhaseRate, rule.Pass, toyConfig{Resource: "other", Related: "r"}, 0},
		{"Done", rule.PhaseRate, rule.Pass, toyConfig{}, 1},
		{"Done", rule.PhaseAccess, rule.Pass, toyConfig{}, 1},
		{"Done", rule.PhaseRate, rule.Pass, toyConfig{Shadow: true}, 1},
	} {
		name := fmt.Sprint(test.place, test.phase, test.decision, test.of.Shadow)
		t.Run(name, func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				kind := foreignKind(f, test.phase, test.decision)
				e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
				defer e.Close()
				test.of.Name, test.of.Resource = "x", cmp.Or(test.of.Resource, "r")
				require.NoError(t, e.Load(foreignSet(kind.Of(test.of))))
				assert.False(t, f.run(test.place, func() {
					guard, _ := e.Entry(t.Context(), "r")
					guard.Exit()
				}))
				require.NoError(t, e.Load(foreignSet()))
				holdsNothing(t, e, test.used)
			})
		})
	}
}

// A call that a later rule refuses gives back what it has taken, also behind a limiter that fails then.
func TestRefusedCallThatALimiterFailsHoldsNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		kind := foreignKind(f, rule.PhaseRate, rule.Pass)
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		defer e.Close()
		set := foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))
		set.Flow = append(set.Flow, flow.Rule{Name: "none", Resource: "r", Limit: 0})
		require.NoError(t, e.Load(set))
		assert.False(t, f.run("GiveBack", func() { _, _ = e.Entry(t.Context(), "r") }))
		require.NoError(t, e.Load(foreignSet()))
		holdsNothing(t, e, 0)
	})
}

func TestCallThatAnOptionFailsHoldsNothing(t *testing.T) {
	for name, shadow := range map[string]bool{"rule": false, "shadow": true} {
		t.Run(name, func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
				defer e.Close()
				set := foreignSet()
				set.HotParam = []hotparam.Rule{{Resource: "r", Param: rule.StringsOf("user"), Limit: 1000, Shadow: shadow}}
				require.NoError(t, e.Load(set))
				read := func(_ *int, _ string) rule.Attribute {
					f.in("read")
					return rule.Attribute{}
				}
				assert.False(t, f.run("read", func() {
					_, _ = e.Entry(t.Context(), "r", core.Attributes(read, new(int)))
				}))
				holdsNothing(t, e, 0)
			})
		})
	}
}

func TestCallThatTheObserverFailsHoldsNothing(t *testing.T) {
	for _, place := range []string{"Waited", "Waited for nothing", "Refused"} {
		t.Run(place, func(t *testing.T) {
			eachFailure(t, func(t *testing.T, f *foreign) {
				synctest.Test(t, func(t *testing.T) {
					e := core.New(core.Config{Logger: quiet, Observer: core.Observer{
						Waited: func(_ context.Context, w core.Wait) {
							if w.Err == nil {
								f.in("Waited")
							} else {
								f.in("Waited for nothing")
							}
						},
						Refused: func(context.Context, *core.BlockError) { f.in("Refused") },
					}})
					defer e.Close()
					set := foreignSet()
					set.Flow = append(set.Flow, flow.Rule{Name: "t", Resource: "r", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
					require.NoError(t, e.Load(set))
					require.Equal(t, 1, enter(e, "r", 1))
					ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
					defer cancel()
					switch place {
					case "Waited for nothing":
						time.AfterFunc(500*time.Millisecond, cancel)
					case "Refused":
						require.Equal(t, 1, enter(e, "r", 1))
						ctx = core.ContextWithPriority(t.Context(), rule.PriorityNormal)
					}
					assert.False(t, f.run(place, func() {
						if place == "Refused" {
							_, _ = e.Entry(ctx, "r", core.NoWait())
							return
						}
						_, _ = e.Entry(ctx, "r")
					}))
					time.Sleep(time.Minute)
					require.NoError(t, e.Load(foreignSet()))
					holdsNothing(t, e, 0)
				})
			})
		})
	}
}

// A call of which nobody hears that it has passed took no token for good.
func TestTokensOfACallThatTheObserverFailsComeBack(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		synctest.Test(t, func(t *testing.T) {
			e := core.New(core.Config{Logger: quiet, Observer: core.Observer{Waited: func(context.Context, core.Wait) { f.in("Waited") }}})
			defer e.Close()
			set := foreignSet()
			set.Isolation[0].MaxWait = time.Minute
			require.NoError(t, e.Load(set))
			var guards [foreignPlaces]core.Guard
			for i := range guards {
				guards[i], _ = e.Entry(t.Context(), "r")
			}
			time.AfterFunc(time.Second, func() {
				for i := range guards {
					guards[i].Exit()
				}
			})
			assert.False(t, f.run("Waited", func() { _, _ = e.Entry(t.Context(), "r") }))
			synctest.Wait() // until the last guard has exited
			assert.EqualValues(t, foreignPlaces, e.Resource("r").Snapshot().Passed)
			holdsNothing(t, e, foreignPlaces)
		})
	})
}

func TestStateChangeThatTheObserverFailsFreesThePlace(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Observer: core.Observer{
			StateChanged: func(core.StateChange) { f.in("StateChanged") },
		}})
		defer e.Close()
		set := foreignSet()
		set.Breaker = []breaker.Rule{{Resource: "r", Strategy: breaker.ErrorCount, Threshold: 1, MinCalls: 1}}
		require.NoError(t, e.Load(set))
		assert.False(t, f.run("StateChanged", func() {
			guard, _ := e.Entry(t.Context(), "r")
			guard.MarkFailed()
			guard.Exit()
		}))
		require.NoError(t, e.Load(foreignSet()))
		holdsNothing(t, e, 1)
	})
}

func TestCallThatTheClockFailsHoldsNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		e := core.New(core.Config{Clock: foreignClock{clock.NewVirtual(begin), f}, Logger: quiet})
		defer e.Close()
		require.NoError(t, e.Load(foreignSet()))
		assert.False(t, f.run("Now", func() { _, _ = e.Entry(t.Context(), "r") }))
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		assert.False(t, f.run("Now", func() { guard.Exit() }), "at its end")
		guard.Exit()
		holdsNothing(t, e, 1)
	})
}

func TestCallWhoseFunctionFailsHoldsNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, IsFailure: func(error) bool {
			f.in("IsFailure")
			return true
		}})
		defer e.Close()
		require.NoError(t, e.Load(foreignSet()))
		for _, place := range []string{"function", "IsFailure"} {
			assert.False(t, f.run(place, func() {
				_ = e.Do(t.Context(), "r", func(context.Context) error {
					f.in("function")
					return errors.New("failed")
				})
			}))
		}
		holdsNothing(t, e, 2)
	})
}

// Whoever ends a call wakes another one, whose wake-up fails: both places are free in the end, and the
// third call, which waits behind, is woken too.
func TestWakeUpThatFailsKeepsNobodyWaiting(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
		defer e.Close()
		set := foreignSet()
		set.Isolation[0].MaxWait = time.Minute
		require.NoError(t, e.Load(set))
		var guards [foreignPlaces]core.Guard
		for i := range guards {
			guards[i], _ = e.Entry(t.Context(), "r")
		}
		woken := 0
		var waits [2]*core.Arrival
		for i := range waits {
			waits[i] = e.Arrive(t.Context(), "r", func() {
				woken++
				f.in("wake")
			})
			_, done := waits[i].Proceed()
			require.False(t, done)
		}
		f.run("wake", func() { guards[0].Exit() })
		f.run("", func() { guards[1].Exit() })
		assert.Equal(t, 2, woken)
		for i := range waits {
			_, done := waits[i].Proceed()
			require.True(t, done)
			guard, err := waits[i].Result()
			require.NoError(t, err)
			guard.Exit()
		}
		holdsNothing(t, e, 4)
	})
}

func TestArrivalThatFailsHoldsNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		kind := foreignKind(f, rule.PhaseRate, rule.Pass)
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		defer e.Close()
		require.NoError(t, e.Load(foreignSet(kind.Of(toyConfig{Name: "x", Resource: "r"}))))
		a := e.Arrive(t.Context(), "r", func() {})
		assert.False(t, f.run("Acquire", func() { a.Proceed() }))
		_, done := a.Proceed()
		assert.True(t, done)
		_, err := a.Result()
		require.ErrorContains(t, err, "was not decided")
		holdsNothing(t, e, 0)
	})
}

func TestCallWhoseContextHasEndedTakesNothing(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
	defer e.Close()
	require.NoError(t, e.Load(foreignSet()))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, late: context.DeadlineExceeded} {
		_, err := e.Entry(ctx, "r")
		assert.Equal(t, want, err)
		_, err = e.Resource("r").Entry(ctx, core.String("user", "u"))
		assert.Equal(t, want, err)
		assert.Equal(t, want, e.Do(ctx, "no rule", func(context.Context) error { return nil }))
		a := e.Arrive(ctx, "r", func() {})
		_, done := a.Proceed()
		assert.True(t, done)
		_, err = a.Result()
		assert.Equal(t, want, err)
	}
	assert.Zero(t, e.Resource("r").Snapshot().Passed)
	assert.Zero(t, e.Resource("r").Snapshot().Blocked)
	holdsNothing(t, e, 0)
}

// A call that is woken at the very moment at which its caller leaves does not pass.
func TestCallWhoseContextEndsWhileItIsWokenTakesNothing(t *testing.T) {
	for range 20 { // a select chooses at random
		synctest.Test(t, func(t *testing.T) {
			e := core.New(core.Config{Logger: quiet})
			defer e.Close()
			set := foreignSet()
			set.Isolation[0].MaxWait = time.Minute
			require.NoError(t, e.Load(set))
			var guards [foreignPlaces]core.Guard
			for i := range guards {
				guards[i], _ = e.Entry(t.Context(), "r")
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, func() {
				cancel() // first: else the call may pass before its caller leaves
				guards[0].Exit()
				guards[1].Exit()
			})
			_, err := e.Entry(ctx, "r")
			require.ErrorIs(t, err, context.Canceled)
			synctest.Wait() // for the other goroutine's exits
			holdsNothing(t, e, foreignPlaces)
		})
	}
}

// foreignRule is a document with a rule of the kind of the program, and one on "r" that lets limit calls
// pass in a second.
func foreignDocument(revision int64, limit int, names ...string) core.Document {
	text := fmt.Sprintf("flow: [{resource: r, limit: %d}]\nforeign:\n", limit)
	for _, name := range names {
		text += fmt.Sprintf("- {name: %s, match: \"r*\"}\n", name)
	}
	return doc("d", revision, text)
}

func TestKindThatFailsChangesNothing(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		kind := foreignKind(f, rule.PhaseRate, rule.Pass)
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		defer e.Close()
		set := func(limit float64, names ...string) rules.Set {
			s := rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: limit}}}
			for _, name := range names {
				s.Custom = append(s.Custom, kind.Of(toyConfig{Name: name, Resource: "r"}))
			}
			return s
		}
		require.NoError(t, e.Load(set(3, "a")))
		var err error
		require.True(t, f.run("New of b", func() { err = e.Load(set(5, "a", "b")) }))
		require.ErrorContains(t, err, `core: the kind of rule foreign "b" has `)
		assert.Equal(t, 2, e.Status().Rules)
		assert.Equal(t, 3, enter(e, "r", 10), "what was in force stays")

		require.NoError(t, e.Load(set(7, "a", "b")), "it works now")
		assert.Equal(t, 3, e.Status().Rules)
		assert.Equal(t, 4, enter(e, "r", 10), "in the same second")
		require.NoError(t, e.Load(rules.Set{}))
		assert.Equal(t, 10, enter(e, "r", 10))
	})
}

func TestDocumentWhoseKindFailsIsRejectedUntilItIsMended(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		source := newMemory("memory")
		kind := foreignKind(f, rule.PhaseRate, rule.Pass)
		var rejected []core.Rejection
		e := core.New(core.Config{
			Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind},
			Observer: core.Observer{Rejected: func(r core.Rejection) { rejected = append(rejected, r) }},
		})
		defer e.Close()
		require.NoError(t, e.Follow(t.Context(), source))
		source.put(core.Change{Complete: true, Documents: []core.Document{foreignDocument(1, 3, "a")}})
		place := "New of b"
		bad := foreignDocument(2, 5, "a", "b")
		f.at.Store(&place)
		source.put(core.Change{Documents: []core.Document{bad, doc("other", 2, text("x", 1))}})
		f.at.Store(&place)
		source.put(core.Change{Documents: []core.Document{bad}})
		require.Len(t, rejected, 1, "once")
		require.ErrorContains(t, rejected[0].Err, `core: the kind of rule foreign "b" has `)
		status := e.Status().Sources[0]
		assert.True(t, status.Connected)
		require.Len(t, status.Documents, 2)
		assert.EqualValues(t, 1, status.Documents[0].Revision)
		assert.EqualValues(t, 2, status.Documents[0].RejectedRevision)
		require.NoError(t, status.Documents[1].Rejected, "other documents are applied")
		assert.Equal(t, 3, enter(e, "r", 10), "what was in force stays")

		source.put(core.Change{Documents: []core.Document{bad}})
		assert.Equal(t, 2, enter(e, "r", 10), "the same document, once its kind works")
		source.put(core.Change{Documents: []core.Document{foreignDocument(3, 6, "b", "c")}})
		assert.Equal(t, 1, enter(e, "r", 10))
		require.NoError(t, e.Load(foreignSet()))
		require.NoError(t, e.Load(rules.Set{}))
	})
}

// A rule can be made when it is tried, and not when it comes into force, or on a resource that is called
// for the first time.
func TestKindThatFailsOnOneResourceLeavesTheRestAlone(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		kind := foreignKind(f, rule.PhaseRate, rule.Block)
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Kinds: []rule.Definition{kind}})
		defer e.Close()
		require.NoError(t, e.Load(rules.Set{
			Flow:   []flow.Rule{{Match: "r*", Limit: 2}},
			Custom: []rule.Rule{kind.Of(toyConfig{Name: "x", Match: "r*", Shadow: true})},
		}))
		require.True(t, f.run("New", func() { assert.Equal(t, 2, enter(e, "r1", 10)) }))
		assert.Equal(t, 2, enter(e, "r2", 10))
		assert.EqualValues(t, 0, e.Resource("r1").Snapshot().Rules[1].WouldBlock)
		require.NoError(t, e.Load(rules.Set{
			Flow:   []flow.Rule{{Match: "r*", Limit: 3}},
			Custom: []rule.Rule{kind.Of(toyConfig{Name: "x", Match: "r*", Shadow: true, Attributes: "user"})},
		}))
		assert.Equal(t, 1, enter(e, "r1", 10))
		assert.EqualValues(t, 1, e.Resource("r1").Snapshot().Rules[1].WouldBlock, "the next version has a limiter")
		require.NoError(t, e.Load(rules.Set{}))
	})
}

// Whoever keeps the log is code of the program too.
func TestLogThatFailsLeavesRulesAndDocumentsInStep(t *testing.T) {
	eachFailure(t, func(t *testing.T, f *foreign) {
		synctest.Test(t, func(t *testing.T) {
			e := core.New(core.Config{Logger: slog.New(foreignHandler{slog.DiscardHandler, f})})
			defer e.Close()
			place := "penstock: source connected"
			f.at.Store(&place)
			require.NoError(t, e.Follow(t.Context(), onceSource(text("r", 3))))
			synctest.Wait()
			assert.Equal(t, 3, enter(e, "r", 10))
			f.run("penstock: rules swapped", func() { _ = e.Load(rules.Set{Flow: []flow.Rule{{Name: "code", Resource: "r", Limit: 0}}}) })
			assert.Zero(t, enter(e, "r", 10))
			require.NoError(t, e.Load(rules.Set{}))
		})
	})
}

// foreignHandler is a handler of the log that fails at a message.
type foreignHandler struct {
	slog.Handler
	*foreign
}

func (h foreignHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h foreignHandler) Handle(_ context.Context, r slog.Record) error {
	h.in(r.Message)
	return nil
}

// onceSource is a source with one document, which it delivers when it is run.
type onceSource string

func (onceSource) Name() string { return "once" }

func (s onceSource) Run(ctx context.Context, sink core.Sink) error {
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{doc("d", 1, string(s))}})
	<-ctx.Done()
	return ctx.Err()
}
