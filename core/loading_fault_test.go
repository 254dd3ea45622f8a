package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

func explained(e *core.Engine, resource string) (names []string) {
	for _, of := range e.Explain(resource) {
		names = append(names, of.Name)
	}
	return names
}

// In which order rules stand in documents or code makes no difference.
func TestRulesAreAskedInTheSameOrderHoweverTheyStand(t *testing.T) {
	exact := flow.Rule{Name: "exact", Resource: "a", Limit: 1}
	pattern := flow.Rule{Name: "pattern", Match: "*", Limit: 2}
	other := flow.Rule{Name: "other", Match: "a*", Limit: 3}
	e, _ := newEngine(t, exact, pattern, other)
	enter(e, "a2", 1)
	for _, set := range [][]flow.Rule{{pattern, exact, other}, {other, exact, pattern}, {exact, pattern, other}} {
		load(t, e, set...)
		assert.Equal(t, []string{"other", "pattern", "exact"}, explained(e, "a"))
		assert.Equal(t, []string{"other", "pattern"}, explained(e, "a2"), "known")
		assert.Equal(t, []string{"other", "pattern"}, explained(e, "a3"), "not known yet")
		assert.EqualValues(t, 1, e.Status().Revision, "nothing has changed")
	}
}

// countdown is a clock that does something at one of its readings.
type countdown struct {
	*clock.Virtual
	left int
	then func()
}

func (c *countdown) Now() clock.Instant {
	if c.left--; c.left == 0 {
		c.then()
	}
	return c.Virtual.Now()
}

// A call of a name that found no slot is on its way while the first pattern is put
// in force: one that does not match it does not touch it.
func TestAPatternHoldsOnlyWhatItMatchesWhenItComesBetween(t *testing.T) {
	for reading := range 4 {
		c := &countdown{Virtual: clock.NewVirtual(begin)}
		e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 1})
		defer e.Close()
		require.Equal(t, 2, enter(e, "one", 1)+enter(e, "b", 1))
		c.then = func() { load(t, e, flow.Rule{Match: "a:*", Limit: 0}) }
		c.left = reading + 1
		require.Equal(t, 1, enter(e, "b", 1), "loaded at reading %d", reading+1)
	}
}

// When a rule comes to name a name that had a place, there is a place for another.
func TestANameThatARuleComesToNameFreesItsSlot(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 1})
	defer e.Close()
	enter(e, "one", 1)
	enter(e, "two", 1)
	load(t, e, flow.Rule{Resource: "one", Limit: 5})
	enter(e, "two", 1)
	enter(e, "three", 1)
	var names []string
	for _, r := range e.Snapshot().Resources {
		names = append(names, r.Name)
	}
	assert.Equal(t, []string{rule.OtherResources, "one", "two"}, names)
}

// Rules that would move to a document which cannot be put in force are gone.
func TestRulesThatMoveToABrokenDocumentCountAsGone(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Documents: []core.Document{doc("d", 1, text("abcd", 1))}})
	source.put(core.Change{Removed: []string{"d"}, Documents: []core.Document{doc("e", 2, text("abcd", 2)+"!")}})
	assert.Len(t, active(e), 4)
	require.Len(t, *rejected, 2)
	assert.NotNil(t, e.Status().Sources[0].HeldBack)

	source.put(core.Change{Documents: []core.Document{doc("e", 3, text("abcd", 3))}})
	assert.Equal(t, map[string]float64{"a": 3, "b": 3, "c": 3, "d": 3}, active(e))
	assert.Nil(t, e.Status().Sources[0].HeldBack)
}

// A rule that the code has too is still a rule of its document: it does not count
// as gone.
func TestRulesThatWaitForTheirNamesAreNotGone(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Documents: []core.Document{doc("d", 1, text("abcd", 1))}})
	load(t, e, flow.Rule{Resource: "a", Limit: 7}, flow.Rule{Resource: "b", Limit: 7}, flow.Rule{Resource: "c", Limit: 7})
	require.Len(t, *rejected, 1)
	source.put(core.Change{Documents: []core.Document{doc("d", 2, text("abcd", 2))}})
	assert.Equal(t, map[string]float64{"a": 7, "b": 7, "c": 7, "d": 2}, active(e))
	require.Len(t, *rejected, 2, "another version")
	assert.Nil(t, e.Status().Sources[0].HeldBack)
	assert.Equal(t, 1, e.Status().Sources[0].Documents[0].Rules)

	source.put(core.Change{Documents: []core.Document{doc("d", 3, text("d", 3))}})
	back := e.Status().Sources[0].HeldBack
	require.NotNil(t, back)
	assert.Equal(t, 3, back.Removed)
	load(t, e)
	assert.Equal(t, map[string]float64{"a": 2, "b": 2, "c": 2, "d": 2}, active(e))
}

// A rule moves to another document of its source, which has had it for a while.
func TestARuleThatAnotherDocumentHasTooIsNotGone(t *testing.T) {
	source := newMemory("memory")
	e, _ := guarded(t, source)
	source.put(core.Change{Complete: true, Documents: []core.Document{
		doc("old", 1, text("abcd", 1)), doc("new", 2, text("abcd", 2)),
	}})
	assert.Equal(t, map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1}, active(e))
	source.put(core.Change{Removed: []string{"old"}})
	assert.Equal(t, map[string]float64{"a": 2, "b": 2, "c": 2, "d": 2}, active(e))
	assert.Nil(t, e.Status().Sources[0].HeldBack)
}

// Who loses some of its names keeps the others, whoever else loses some.
func TestOnlyRulesWhoseNamesAreTakenWait(t *testing.T) {
	source := newMemory("memory")
	e, _ := follow(t, source)
	source.put(complete(doc("x", 1, text("p", 1)), doc("z", 1, text("s", 1))))
	load(t, e, flow.Rule{Resource: "r", Limit: 7})
	source.put(core.Change{Documents: []core.Document{
		doc("x", 2, text("qs", 2)), doc("y", 2, text("q", 2)), doc("z", 2, text("trs", 2)),
	}})
	assert.Equal(t, map[string]float64{"q": 2, "r": 7, "s": 2, "t": 2}, active(e))
	for _, d := range e.Status().Sources[0].Documents {
		switch d.Name {
		case "x":
			assert.NoError(t, d.Rejected)
			assert.Equal(t, 2, d.Rules)
		case "y":
			assert.ErrorContains(t, d.Rejected, `"q": name is taken by the rule at x:1:8 of source "memory"`)
			assert.Zero(t, d.Rules)
		case "z":
			assert.ErrorContains(t, d.Rejected, `"r": name is taken by flow[0], made in code`)
			assert.ErrorContains(t, d.Rejected, `"s": name is taken by the rule at x:1:`)
			assert.Equal(t, 1, d.Rules)
		}
	}
}

func TestTheShareThatMayGo(t *testing.T) {
	for _, test := range []struct {
		most        float64
		rules, gone int
		heldBack    bool
	}{
		{0, 10, 10, false},
		{math.NaN(), 10, 10, false},
		{-1, 10, 10, false},
		{1, 10, 10, false},
		{2, 10, 10, false},
		{math.Inf(1), 10, 10, false},
		{1e-300, 10, 1, true},
		{1e-300, 10, 0, false},
		{0.29, 100, 29, false}, // 0.29 × 100 is less than 29
		{0.29, 100, 30, true},
		{0.5, 3, 2, true},
		{0.999, 1, 1, true},
	} {
		t.Run(fmt.Sprintf("%v of %d", test.most, test.rules), func(t *testing.T) {
			e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxRemoval: test.most})
			defer e.Close()
			source := newMemory("memory")
			require.NoError(t, e.Follow(t.Context(), source))
			document := func(rules int) core.Change {
				text := "flow: ["
				for i := range rules {
					text += fmt.Sprintf("{resource: r%d, limit: 1},", i)
				}
				return core.Change{Documents: []core.Document{doc("d", 1, text+"]")}}
			}
			source.put(document(test.rules))
			source.put(document(test.rules - test.gone))
			assert.Equal(t, test.heldBack, e.Status().Sources[0].HeldBack != nil)
		})
	}
}

// What is held back stays so while the source is not followed, and is judged by what
// it holds when it is again.
func TestAHeldBackSourceThatEndsAndIsFollowedAgain(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, newMemory("other"))
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Follow(ctx, source))
	status := func() core.SourceStatus { return e.Status().Sources[1] }
	source.put(core.Change{Complete: true, Revision: 1, Documents: letters(1, "a", "b", "c", "d")})
	source.put(core.Change{Complete: true, Revision: 2})
	require.NotNil(t, status().HeldBack)

	cancel()
	require.Eventually(t, func() bool { return e.Follow(t.Context(), source) == nil }, 2*time.Minute, time.Millisecond)
	load(t, e, flow.Rule{Resource: "x", Limit: 1})
	require.NotNil(t, status().HeldBack)
	assert.Len(t, *rejected, 1)
	source.put(core.Change{Complete: true, Revision: 3})
	assert.Len(t, *rejected, 1, "known already")
	source.put(core.Change{Complete: true, Revision: 4, Documents: letters(4, "a", "b")})
	assert.Nil(t, status().HeldBack)
	assert.Len(t, active(e), 3)
}

// A copy is one version of the source like another: what it would have removed had it been
// read is held back.
func TestWhatIsReadAfterACopyIsComparedWithIt(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Revision: 9, CopiedAt: 1, Documents: letters(9, "a", "b", "c", "d")})
	source.put(core.Change{Complete: true, Revision: 12, ConfirmedAt: 9})
	assert.Len(t, *rejected, 1, "what was confirmed before the copy is in the copy")
	assert.Len(t, active(e), 4)
	source.put(core.Change{Complete: true, Revision: 5, ConfirmedAt: 5})
	assert.Len(t, active(e), 4, "the history of another server, in which that was confirmed of we do not know what")
	source.put(core.Change{Complete: true, Revision: 6, ConfirmedAt: 6})
	assert.Empty(t, active(e))
}

func TestAChangeThatComesTooLate(t *testing.T) {
	e, _ := follow(t)
	var sink core.Sink
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, e.Follow(ctx, sourceFunc(func(ctx context.Context, s core.Sink) error {
		sink = s
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})))
	cancel()
	<-ended
	before := e.Status().Sources[0].Documents
	sink.Apply(complete(doc("a", 1, text("a", 1))))
	sink.Disconnected(errors.New("gone"))
	assert.Equal(t, before, e.Status().Sources[0].Documents)
	assert.NoError(t, e.Status().Sources[0].Err)
	assert.Empty(t, active(e))
}

type sourceFunc func(context.Context, core.Sink) error

func (f sourceFunc) Name() string                                  { return "func" }
func (f sourceFunc) Run(ctx context.Context, sink core.Sink) error { return f(ctx, sink) }

// What a change costs does not depend on how many rules there are that documents
// clash with.
func TestDocumentsThatClashWithManyRules(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	source := newMemory("memory")
	e, rejected := follow(t, source)
	var code []flow.Rule
	count := longtest.Of(4_000, 20_000)
	for i := range count {
		code = append(code, flow.Rule{Resource: fmt.Sprint("r", i), Limit: 1})
	}
	load(t, e, code...)
	change := complete()
	for i := range 50 {
		change.Documents = append(change.Documents, doc(fmt.Sprint(i), 1, fmt.Sprintf("flow: [{resource: r%d, limit: 1}]", i)))
	}
	source.put(change)
	assert.Len(t, *rejected, 50)
	before := allocated()
	source.put(core.Change{Documents: []core.Document{doc("a", 2, "flow: []")}})
	assert.Less(t, allocated()-before, uint64(1<<20), "bytes")
	assert.Len(t, *rejected, 50)

	load(t, e, code[25:]...)
	for _, d := range e.Status().Sources[0].Documents {
		if d.Name == "a" {
			continue
		}
		assert.Equal(t, 1, d.Rules+strings.Count(fmt.Sprint(d.Rejected), "made in code"), d.Name)
	}
	assert.Equal(t, count, e.Status().Rules)
}

// allocated returns how many bytes were ever allocated.
func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// After the last of many rules is gone the engine needs hardly more than before: the
// room in its maps for their names.
func TestRulesThatAreGoneCostNothing(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("loads thousands of rules")
	}
	e, c := newEngine(t)
	before := heap()
	count := longtest.Of(1_000, 5_000)
	for range 3 {
		many := matching(50, "r:*")
		for i := range count {
			many = append(many, flow.Rule{Resource: fmt.Sprint("r:", i), Limit: 1, Related: fmt.Sprint("r:", (i+1)%count)})
		}
		load(t, e, many...)
		slices.Reverse(many)
		load(t, e, many...)
		load(t, e)
		c.Advance(2 * time.Minute)
		assert.Empty(t, e.Snapshot().Resources)
	}
	after := heap()
	t.Logf("%d KiB", (int64(after)-int64(before))>>10)
	assert.LessOrEqual(t, after, before+uint64(count)*150)
}
