package access_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// The instants of calls go on by an hour while the wall clock is set back and forth.
func TestEntryEndsByTheWallClock(t *testing.T) {
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	l, err := list.Parse(context.Background(), strings.NewReader("203.0.113.9 until 2026-12-01T00:00:00Z\n203.0.113.8\n"), list.Options{})
	require.NoError(t, err)
	lists, wall := list.NewRegistry(), end.Add(-time.Second)
	lists.Set("blocked", l)
	env := rule.Env{
		Version: 1, Lists: lists, Changed: func(clock.Instant, string, string, string) {},
		Until: func(t time.Time) time.Duration { return t.Sub(wall) },
	}
	limiter := access.Kind().Of(access.Rule{Resource: "r", List: "blocked"}).WithDefaults().NewLimiter(env)
	call := rule.Call{Now: clock.Instant(end.Add(-5 * time.Hour).UnixNano()), Tokens: 1, Attribute: rule.String("203.0.113.9")}
	for _, step := range []struct {
		wall time.Duration
		want rule.Decision
	}{{-1, rule.Block}, {0, rule.Pass}, {-time.Hour, rule.Block}, {48 * time.Hour, rule.Pass}} {
		wall = end.Add(step.wall)
		call.Now = call.Now.Add(time.Hour)
		_, decision := limiter.Acquire(call)
		assert.Equal(t, step.want, decision, step.wall)
		entries := 2.0
		if step.want == rule.Pass {
			entries = 1
		}
		assert.InDelta(t, entries, limiter.Status(call.Now).Gauges[0], 0, step.wall)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { limiter.Acquire(call) }))
}
