package adaptertest

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// NewEngine returns an engine with these rules, which is closed after the test. Its clock
// does not advance by itself. It begins at a full hour, at least one hour ago, so that no
// deadline of a context is too near for a call to wait.
func NewEngine(tb testing.TB, set rules.Set) (*core.Engine, *clock.Virtual) {
	tb.Helper()
	virtual := clock.NewVirtual(time.Now().Add(-time.Hour).Truncate(time.Hour))
	engine := core.New(core.Config{
		Clock: virtual, Logger: slog.New(slog.DiscardHandler),
		Exempt: []string{}, // calls of any name are under the rules of a test
	})
	tb.Cleanup(engine.Close)
	require.NoError(tb, engine.Load(set))
	return engine, virtual
}

// Called returns the names of the resources that calls were made of, sorted.
func Called(engine *core.Engine) []string {
	var names []string
	for _, resource := range engine.Snapshot().Resources {
		if resource.Passed+resource.Blocked > 0 {
			names = append(names, resource.Name)
		}
	}
	slices.Sort(names)
	return names
}

// RequireEnded waits until so many calls of the resource have ended and none is under way,
// and returns what was counted: handlers return after their response was read.
func RequireEnded(t *testing.T, engine *core.Engine, resource string, calls int) stat.Totals {
	t.Helper()
	return requireEnded(t, eventTimeout, engine, resource, calls)
}

func requireEnded(t *testing.T, timeout time.Duration, engine *core.Engine, resource string, calls int) stat.Totals {
	t.Helper()
	require.Eventually(t, func() bool {
		now := totals(engine, resource)
		return now.InFlight == 0 && now.Completed == uint64(calls)
	}, timeout, interval, "%d calls of %q should have ended", calls, resource)
	return totals(engine, resource)
}

func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}

// requireNoneUnderWay waits until no call of the engines is under way or waits.
func requireNoneUnderWay(t *testing.T, timeout time.Duration, engines []*core.Engine) {
	t.Helper()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(engines, func(e *core.Engine) bool { return e != nil && isBusy(e) })
	}, timeout, interval, "calls are left under way")
}

func isBusy(engine *core.Engine) bool {
	for _, resource := range engine.Snapshot().Resources {
		if resource.InFlight != 0 || resource.Waiting != 0 {
			return true
		}
	}
	return false
}

// releaseAfterFailure closes the engines of a test that has failed, so that calls that wait
// end and servers can stop.
func releaseAfterFailure(t *testing.T, engines []*core.Engine) {
	t.Helper()
	for _, engine := range engines {
		if engine != nil && t.Failed() {
			engine.Close()
		}
	}
}

// within returns a context that is cancelled after a time, without a deadline.
func within(ctx context.Context, timeout time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(timeout, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// receive returns what comes from a channel, and fails the test if nothing does in time.
func receive[T any](t *testing.T, timeout time.Duration, channel <-chan T) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(timeout):
		require.Fail(t, "what the test waits for does not happen")
	}
	panic("not reached")
}

// hold waits until something comes from a channel, or the test ends. It is for handlers.
func hold(t *testing.T, channel <-chan struct{}) {
	t.Helper()
	select {
	case <-channel:
	case <-t.Context().Done():
	}
}

// requireTimer waits until one call waits for the clock.
func requireTimer(t *testing.T, timeout time.Duration, virtual *clock.Virtual) {
	t.Helper()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, timeout, interval, "a call should wait")
}
