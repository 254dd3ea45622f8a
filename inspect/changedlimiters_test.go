package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

// What is not in its first state is kept for a time, but not over what an operator or a document changes.
func TestChangedLimitersAreKeptForATime(t *testing.T) {
	c := clock.NewVirtual(time.Unix(1e9, 0))
	engine := core.New(core.Config{Clock: c})
	defer engine.Close()
	load := func(minCalls string) {
		set, err := rules.Parse("", []byte(`breaker: [{name: b, match: "*", threshold: 0.5, window: 1s, openFor: 1s, probes: 1, minCalls: `+minCalls+`}]`))
		require.NoError(t, err)
		require.NoError(t, engine.Load(set))
	}
	load("1")
	fail := func() {
		guard, err := engine.Entry(t.Context(), "orders")
		require.NoError(t, err)
		guard.Fail(assert.AnError)
		guard.Exit()
	}
	fail()
	var l changedLimiters
	keep := func() { l.until = c.Now().Add(2 * time.Second) } // as if it had taken long
	require.Len(t, l.limiters(engine).Limiters, 1)
	keep()
	c.Advance(1500 * time.Millisecond)
	guard, err := engine.Entry(t.Context(), "orders")
	require.NoError(t, err)
	guard.Exit() // the breaker closes
	require.Len(t, l.limiters(engine).Limiters, 1, "as it was")
	c.Advance(500 * time.Millisecond)
	require.Empty(t, l.limiters(engine).Limiters, "found anew")

	fail()
	require.Len(t, l.limiters(engine).Limiters, 1)

	keep()
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker", Rule: "b"}, "open"))
	require.Len(t, l.limiters(engine).Limiters, 1, "an operator sees what came of it")
	keep()
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker", Rule: "b"}, ""))
	load("2")
	require.Empty(t, l.limiters(engine).Limiters, "and so does who pushes")
}

// A list is missing, and no call has come since: the engine tells of that only once somebody looks.
func TestWhatChangesWithoutBeingToldIsFound(t *testing.T) {
	c, lists := clock.NewVirtual(time.Unix(1e9, 0)), list.NewRegistry()
	engine := core.New(core.Config{Clock: c, Lists: lists})
	defer engine.Close()
	set, err := rules.Parse("", []byte(`
access: [{name: a, resource: orders, attribute: origin, list: banned}]
breaker: [{name: b, resource: orders, threshold: 0.5}]
`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	enter := func() {
		guard, err := engine.Entry(t.Context(), "orders")
		require.NoError(t, err)
		guard.Exit()
	}
	enter()
	var l changedLimiters
	found := l.limiters(engine).Limiters
	require.Len(t, found, 1)
	assert.Equal(t, access.ListMissing, found[0].State)
	banned, err := new(list.Builder).Build(t.Context())
	require.NoError(t, err)
	lists.Set("banned", banned)
	l.until = c.Now().Add(maxKept) // as if it had taken long
	c.Advance(maxKept)
	require.Empty(t, l.limiters(engine).Limiters, "the list is there")
}

func TestWhatIsFoundIsKeptInProportion(t *testing.T) {
	at := clock.Instant(1e9)
	assert.Equal(t, at.Add(3*time.Second), keptUntil(at.Add(-10*time.Millisecond), at))
	assert.Equal(t, at.Add(maxKept), keptUntil(at.Add(-time.Minute), at))
	assert.Equal(t, at, keptUntil(at, at))
}
