package penstock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// gate is a kind of rule that only this test knows: it lets so many calls through,
// ever, once it has opened; those that come before wait. It proves that a kind needs no
// code anywhere else, and does without much of what real kinds need: see package seats of the examples.
type gate struct {
	Name, Resource, Match string
	Shared                bool
	Capacity              int
	OpensAt               time.Duration // since the epoch
	Banned                string        // a user
	Origin                string
	Shadow                bool
}

func gateKind() *rule.Type[gate] {
	common := func(g *gate) rule.Common {
		return rule.Common{
			Name: &g.Name, Resource: &g.Resource, Match: &g.Match, Shared: &g.Shared, Origin: &g.Origin, Shadow: &g.Shadow,
		}
	}
	return rule.Define(rule.Spec[gate]{
		Kind: "gate", Phase: rule.PhaseConcurrency, Reason: rule.Overloaded, Common: common,
		Fields: []rule.Field[gate]{
			rule.FieldOf("capacity", func(g *gate) *int { return &g.Capacity }).
				Required("is missing: write how many calls may pass").Says("how many calls may pass, ever"),
			rule.FieldOf("opensAt", func(g *gate) *time.Duration { return &g.OpensAt }).
				Says("calls wait until then, a time since the epoch"),
			rule.FieldOf("banned", func(g *gate) *string { return &g.Banned }).Says("a user who may not pass").Otherwise("nobody"),
		},
		Validate: func(g *gate) (faults []rule.Fault) {
			if g.Capacity < 0 {
				faults = append(faults, rule.Fault{Field: "capacity", Message: fmt.Sprintf("is %d: must be at least 0", g.Capacity)})
			}
			return faults
		},
		Attributes: func(*gate) []string { return []string{"user"} },
		New: func(g *gate, env rule.Env) rule.Limiter {
			return &gateLimiter{rule: g, env: env, gateState: new(gateState)}
		},
		Adopt: func(present rule.Limiter, g *gate, env rule.Env) rule.Limiter {
			return &gateLimiter{rule: g, env: env, gateState: present.(*gateLimiter).gateState}
		},
		Gauges:   []rule.Gauge{{Name: "passed", Help: "Calls that passed."}, {Name: "ended", Help: "Calls that ended."}},
		States:   []string{"free", "full"},
		Controls: []string{"full"},
	})
}

// gateState is what the versions of a gate have in common.
type gateState struct {
	mu            sync.Mutex
	passed, ended int
	forced        bool
}

type gateLimiter struct {
	*gateState
	rule *gate
	env  rule.Env
}

func (l *gateLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if user, _ := c.Attribute.Text(); user != "" && user == l.rule.Banned {
		return 0, rule.Block
	}
	if c.Now < clock.Instant(l.rule.OpensAt) {
		return 0, rule.Wait
	}
	ticket, decision, isFull := l.take()
	if isFull {
		l.env.Changed(c.Now, "free", "full", "")
	}
	return ticket, decision
}

// take lets a call pass, and says whether it was the last one.
func (l *gateLimiter) take() (t rule.Ticket, d rule.Decision, isFull bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.passed >= l.rule.Capacity || l.forced {
		return 0, rule.Block, false
	}
	l.passed++
	return rule.Ticket(l.passed), rule.Pass, l.passed == l.rule.Capacity
}

func (l *gateLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed--
}

func (l *gateLimiter) RetryAfter(rule.Call) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.passed >= l.rule.Capacity {
		return rule.Never
	}
	return 0
}

func (l *gateLimiter) Status(clock.Instant) rule.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := rule.Status{State: "free", Gauges: []float64{float64(l.passed), float64(l.ended)}}
	if l.passed >= l.rule.Capacity || l.forced {
		s.State = "full"
	}
	return s
}

func (l *gateLimiter) Idle(clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed == 0
}

func (l *gateLimiter) Done(rule.Ticket, rule.Exit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
}

func (l *gateLimiter) Control(_ clock.Instant, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forced = state == "full"
}

func (l *gateLimiter) Join(c rule.Call, _ rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	return &gateWaiter{l, c}, 0, rule.Wait
}

// gateWaiter waits for the gate to open.
type gateWaiter struct {
	of   *gateLimiter
	call rule.Call
}

func (w *gateWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	if opens := clock.Instant(w.of.rule.OpensAt); now < opens {
		return 0, opens.Sub(now), rule.Wait
	}
	w.call.Now = now
	ticket, decision := w.of.Acquire(w.call)
	return ticket, 0, decision
}

func (*gateWaiter) Leave(clock.Instant) {}

func newGates(t *testing.T, changes *[]core.StateChange) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(time.Unix(100, 0))
	e := core.New(core.Config{
		Clock: c, Logger: slog.New(slog.DiscardHandler), Kinds: []rule.Definition{gateKind()}, MaxResources: 3,
		Observer: core.Observer{StateChanged: func(change core.StateChange) { *changes = append(*changes, change) }},
	})
	t.Cleanup(e.Close)
	return e, c
}

// passes says whether a call passes; if so it ends at once.
func passes(t *testing.T, e *core.Engine, resource string, opts ...core.Option) bool {
	t.Helper()
	guard, err := e.Entry(t.Context(), resource, opts...)
	guard.Exit()
	if err != nil {
		var block *core.BlockError
		require.ErrorAs(t, err, &block)
		require.Equal(t, rule.Kind("gate"), block.Kind)
		require.Equal(t, rule.Overloaded, block.Reason)
	}
	return err == nil
}

// gateSource delivers documents.
type gateSource struct{ documents chan string }

func (gateSource) Name() string { return "gates" }

func (s gateSource) Run(ctx context.Context, sink core.Sink) error {
	for revision := int64(1); ; revision++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case text := <-s.documents:
			sink.Apply(core.Change{Complete: true, Revision: revision, Documents: []core.Document{
				{Name: "gates.yaml", Revision: revision, Created: 1, Data: []byte(text)},
			}})
			s.documents <- "" // it is in force
		}
	}
}

func (s gateSource) deliver(text string) {
	s.documents <- text
	<-s.documents
}

func TestCustomKindComesFromDocumentsAndKeepsItsState(t *testing.T) {
	var changes []core.StateChange
	e, _ := newGates(t, &changes)
	source := gateSource{make(chan string)}
	require.NoError(t, e.Follow(t.Context(), source))
	source.deliver("gate: [{name: g, resource: r, capacity: 2}]\nflow: [{name: g, resource: r, limit: 100}]")
	assert.True(t, passes(t, e, "r"))
	assert.True(t, passes(t, e, "r"))
	assert.False(t, passes(t, e, "r"))
	require.Equal(t, []core.StateChange{{At: e.Clock().Now(), Resource: "r", Kind: "gate", Rule: "g", From: "free", To: "full"}}, changes)

	source.deliver("gate: [{name: g, resource: r, capacity: 3}]")
	assert.True(t, passes(t, e, "r"), "two have passed before")
	assert.False(t, passes(t, e, "r"))

	source.deliver("gate: [{name: g, resource: r, capacity: -3, capasity: 7}]")
	status := e.Status()
	assert.Equal(t, 1, status.Rules, "the last good version stays")
	assert.EqualError(t, status.Sources[0].Documents[0].Rejected,
		`rules: gates.yaml:1:41: gate rule "g": capacity is -3: must be at least 0`+"\n"+
			`rules: gates.yaml:1:45: gate rule "g": unknown field "capasity": did you mean "capacity"?`)
}

func TestCustomKindHasOriginsPatternsShadowsAndAttributes(t *testing.T) {
	var changes []core.StateChange
	e, _ := newGates(t, &changes)
	kind := gateKind()
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{
		kind.Of(gate{Match: "each:*", Capacity: 1}),
		kind.Of(gate{Match: "all:*", Shared: true, Capacity: 2}),
		kind.Of(gate{Name: "batch", Resource: "r", Capacity: 0, Origin: "batch"}),
		kind.Of(gate{Resource: "r", Capacity: 10, Banned: "eve"}),
		kind.Of(gate{Name: "shadow", Resource: "r", Capacity: 1, Shadow: true}),
	}}))
	for _, name := range []string{"each:a", "each:b"} {
		assert.True(t, passes(t, e, name))
		assert.False(t, passes(t, e, name))
	}
	assert.True(t, passes(t, e, "all:a"))
	assert.True(t, passes(t, e, "all:b"))
	assert.False(t, passes(t, e, "all:c"))

	assert.False(t, passes(t, e, "r", core.Origin("batch")))
	assert.False(t, passes(t, e, "r", core.String("user", "eve")))
	assert.True(t, passes(t, e, "r", core.String("user", "ann")))
	guard, err := e.Entry(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "shadow", guard.WouldBlock().Rule)
	guard.Exit()

	var all []string
	for _, of := range e.Explain("r", core.Origin("batch")) {
		all = append(all, fmt.Sprintf("%s %s %v %d %d", of.Name, of.State, of.Gauges, of.Blocked, of.WouldBlock))
	}
	assert.Equal(t, []string{"batch full [0 0] 1 0", "r free [2 2] 1 0", "shadow full [1 1] 0 1"}, all)

	require.NoError(t, e.Control(core.Scope{Kind: "gate", Rule: "each:*"}, "full"))
	assert.False(t, passes(t, e, "each:c"), "forced, also for names that are new")
	require.NoError(t, e.Control(core.Scope{Kind: "gate", Rule: "each:*"}, ""))
	assert.Error(t, e.Control(core.Scope{Kind: "gate", Rule: "each:*"}, "ajar"))
	assert.Error(t, e.Control(core.Scope{Kind: "gate", Rule: "nobody"}, "full"))
}

// One limiter stands before all calls of the engine.
func TestCustomKindCanGuardAllResourcesTogether(t *testing.T) {
	var changes []core.StateChange
	e, _ := newGates(t, &changes)
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{gateKind().Of(gate{Name: "engine", Match: "*", Shared: true, Capacity: 5})}}))
	for i := range 5 {
		assert.True(t, passes(t, e, fmt.Sprint("name ", i)), "also beyond the bound of names")
	}
	assert.False(t, passes(t, e, "another"))
	require.Len(t, changes, 1)
	assert.Equal(t, "*", changes[0].Resource)
}

func TestCustomKindLetsCallsWait(t *testing.T) {
	var changes []core.StateChange
	e, c := newGates(t, &changes)
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{gateKind().Of(gate{Resource: "r", Capacity: 1, OpensAt: 102 * time.Second})}}))
	first, second := new(core.Arrival), new(core.Arrival)
	for _, a := range []*core.Arrival{first, second} {
		a.Arrive(t.Context(), e, "r", func() {})
		after, done := a.Proceed()
		assert.False(t, done)
		assert.Equal(t, 2*time.Second, after)
	}
	_, err := e.Entry(t.Context(), "r", core.NoWait())
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.EqualValues(t, 2, e.Resource("r").Snapshot().Waiting)
	c.Advance(2 * time.Second)
	_, done := first.Proceed()
	require.True(t, done)
	_, done = second.Proceed()
	require.True(t, done)
	_, err = first.Result()
	require.NoError(t, err)
	_, err = second.Result()
	require.ErrorIs(t, err, core.ErrBlocked)
}

func TestCustomKindIsSeenByInspectAndSimulate(t *testing.T) {
	var changes []core.StateChange
	e, _ := newGates(t, &changes)
	kind := gateKind()
	require.NoError(t, e.Load(rules.Set{Custom: []rule.Rule{kind.Of(gate{Resource: "r", Capacity: 2})}}))
	passes(t, e, "r")
	explanation := inspect.Explain(e, inspect.Call{Resource: "r"})
	require.Len(t, explanation.Rules, 1)
	of := explanation.Rules[0]
	assert.Equal(t, []inspect.Field{{Name: "resource", Value: "r"}, {Name: "capacity", Value: "2"}}, of.Fields)
	assert.Equal(t, &inspect.State{State: "free", Gauges: []inspect.Gauge{{Name: "passed", Value: 1}, {Name: "ended", Value: 1}}}, of.State)

	control := httptest.NewServer(inspect.ControlHandler(e, inspect.Options{}))
	defer control.Close()
	response, err := control.Client().Post(control.URL+"?kind=gate&rule=r&state=full", "", strings.NewReader(""))
	require.NoError(t, err)
	response.Body.Close()
	assert.Equal(t, 204, response.StatusCode)
	assert.False(t, passes(t, e, "r"))

	set, err := rules.NewTable(kind).Parse("gates.yaml", []byte("gate: [{resource: r, capacity: 2, opensAt: 1s}]"))
	require.NoError(t, err)
	result, err := simulate.Run(t.Context(), set, simulate.Load{Streams: []simulate.Stream{{Resource: "r", Rate: 1}}},
		simulate.Options{Duration: 4 * time.Second, Kinds: []rule.Definition{kind}})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 2, 0, 0}, result.Passed("r"))
	assert.Equal(t, []int{0, 0, 1, 1}, result.Blocked("r"))
}

func TestSetWithAKindThatTheEngineDoesNotKnowIsRefused(t *testing.T) {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	set := rules.Set{Custom: []rule.Rule{gateKind().Of(gate{Resource: "r", Capacity: 1})}}
	assert.ErrorContains(t, e.Load(set), `does not know rules of kind "gate"`)
	assert.NoError(t, errors.Join(set.Validate()))
}
