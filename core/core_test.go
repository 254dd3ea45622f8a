package core_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) {
	longtest.Checks(40)
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

// begin is where the virtual clock of a test stands first: on a second's
// boundary.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newEngine returns an engine on a virtual clock, with the given rules.
func newEngine(t testing.TB, flowRules ...flow.Rule) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet})
	t.Cleanup(e.Close)
	load(t, e, flowRules...)
	return e, c
}

var quiet = slog.New(slog.DiscardHandler)

func load(t testing.TB, e *core.Engine, flowRules ...flow.Rule) {
	t.Helper()
	require.NoError(t, e.Load(rules.Set{Flow: flowRules}))
}

// enter makes n calls of a resource, one after the other, and returns how many
// passed.
func enter(e *core.Engine, resource string, n int, opts ...core.Option) (passed int) {
	for range n {
		guard, err := e.Entry(context.Background(), resource, opts...)
		if err == nil {
			guard.Exit()
			passed++
		}
	}
	return passed
}

// What enforces a rule.
const (
	byWindow   = "window"
	byThrottle = "throttle"
	byBucket   = "bucket"
)

func limiterOf(r flow.Rule) string {
	switch r.Algorithm {
	case flow.Throttle:
		return byThrottle
	case flow.TokenBucket:
		return byBucket
	}
	return byWindow
}
