package sourcetest

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// newEngine returns an engine that follows a new source.
func (f *fixture) newEngine(maxRemoval float64) *core.Engine {
	f.t.Helper()
	source := f.open()
	engine := core.New(core.Config{Logger: slog.New(slog.NewTextHandler(f.log, nil)), MaxRemoval: maxRemoval})
	f.t.Cleanup(func() {
		engine.Close()
		f.requireNoSecrets("the log", f.log.String())
	})
	require.NoError(f.t, engine.Follow(f.t.Context(), source))
	return engine
}

func (f *fixture) ready(engine *core.Engine) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), f.harness.Patience)
	defer cancel()
	require.NoError(f.t, engine.Ready(ctx))
}

// limits returns the limits in force, by resource.
func limits(engine *core.Engine) map[string]float64 {
	inForce := map[string]float64{}
	for _, r := range engine.Snapshot().Resources {
		for _, f := range r.Rules {
			inForce[r.Name] = f.Quota.Limit
		}
	}
	return inForce
}

func (f *fixture) awaitRules(engine *core.Engine, want map[string]float64) {
	f.t.Helper()
	ok := assert.Eventually(f.t, func() bool { return maps.Equal(want, limits(engine)) }, f.harness.Patience, time.Millisecond)
	require.True(f.t, ok, "the engine has %v instead of %v", limits(engine), want)
}

func (f *fixture) awaitStatus(engine *core.Engine, matches func(core.SourceStatus) bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return matches(engine.Status().Sources[0]) }, f.harness.Patience, time.Millisecond)
}

func passes(f *fixture, engine *core.Engine, resource string) bool {
	f.t.Helper()
	guard, err := engine.Entry(f.t.Context(), resource)
	if err != nil {
		require.ErrorIs(f.t, err, core.ErrBlocked)
		return false
	}
	guard.Exit()
	return true
}

func engineEnforcesTheRules(f *fixture) {
	f.put("orders.yaml", limited("orders", 0))
	engine := f.newEngine(0)
	f.ready(engine)
	assert.False(f.t, passes(f, engine, "orders"))
	f.put("orders.yaml", limited("orders", 100))
	f.awaitRules(engine, map[string]float64{"orders": 100})
	assert.True(f.t, passes(f, engine, "orders"))
	f.put("pay.yaml", limited("pay", 0))
	f.awaitRules(engine, map[string]float64{"orders": 100, "pay": 0})
	f.remove("orders.yaml")
	f.awaitRules(engine, map[string]float64{"pay": 0})
	assert.False(f.t, passes(f, engine, "pay"))
}

func engineKeepsTheLastGoodVersion(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", limited("b", 1))
	engine := f.newEngine(0)
	f.awaitRules(engine, map[string]float64{"a": 1, "b": 1})
	broken := []string{"flow: [", limited("a", -1), "flow: [{resource: a, limt: 1}]", "<html>502 Bad Gateway</html>"}
	if f.has(EmptyDocuments) {
		broken = append(broken, "")
	}
	for i, bad := range broken {
		f.put("a.yaml", bad)
		f.put("b.yaml", limited("b", i+2))
		want := map[string]float64{"a": float64(i + 1), "b": float64(i + 2)}
		f.awaitRules(engine, want)
		f.awaitStatus(engine, func(s core.SourceStatus) bool { return s.Documents[0].Rejected != nil })
		status := engine.Status().Sources[0]
		assert.NoError(f.t, status.Documents[1].Rejected)
		assert.True(f.t, status.Connected)
		assert.Equal(f.t, want, limits(engine))

		f.put("a.yaml", limited("a", i+2))
		want["a"] = float64(i + 2)
		f.awaitRules(engine, want)
		f.awaitStatus(engine, func(s core.SourceStatus) bool { return s.Documents[0].Rejected == nil })
	}
}

func engineKeepsItsRulesWhileUnreachable(f *fixture) {
	f.put("orders.yaml", limited("orders", 0))
	engine := f.newEngine(0)
	f.ready(engine)
	f.store.Stop()
	f.awaitStatus(engine, func(s core.SourceStatus) bool { return !s.Connected && s.Err != nil })
	assert.False(f.t, passes(f, engine, "orders"))
	f.store.Start()
	f.awaitStatus(engine, func(s core.SourceStatus) bool { return s.Connected && s.Err == nil })
	assert.False(f.t, passes(f, engine, "orders"))
	f.put("orders.yaml", limited("orders", 7))
	f.awaitRules(engine, map[string]float64{"orders": 7})
}

// engineHoldsBackAnEmptiedStore removes all documents, one after the other. The engine
// allows half of the rules to go, and keeps those left.
func engineHoldsBackAnEmptiedStore(f *fixture) {
	for _, name := range []string{"a", "b", "c", "d"} {
		f.put(name+".yaml", limited(name, 1))
	}
	engine := f.newEngine(0.5)
	f.awaitRules(engine, map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1})
	for _, name := range []string{"a", "b", "c", "d"} {
		f.remove(name + ".yaml")
	}
	f.awaitStatus(engine, func(s core.SourceStatus) bool { return s.HeldBack != nil })
	assert.GreaterOrEqual(f.t, len(limits(engine)), 2)
	f.put("a.yaml", limited("a", 2))
	f.put("b.yaml", limited("b", 2))
	f.put("c.yaml", limited("c", 2))
	f.put("d.yaml", limited("d", 2))
	f.awaitRules(engine, map[string]float64{"a": 2, "b": 2, "c": 2, "d": 2})
}
