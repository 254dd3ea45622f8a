package sourcetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func runEndsWithItsContext(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	source := f.open()
	present := goleak.IgnoreCurrent()
	r, stop := followUntil(f.t, source)
	f.await(r)
	stop()
	requireNoGoroutines(f, present)
	f.requireQuiet(r)

	changes := len(r.Changes())
	f.put("a.yaml", limited("a", 2))
	ctx, cancel := context.WithCancel(f.t.Context())
	cancel()
	again := NewRecorder()
	require.ErrorIs(f.t, source.Run(ctx, again), context.Canceled, "a context that has ended before")
	requireNoGoroutines(f, present)
	assert.Len(f.t, r.Changes(), changes, "nothing is delivered after Run has returned")
}

func runEndsWhileUnreachable(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	source := f.open()
	present := goleak.IgnoreCurrent()
	r, stop := followUntil(f.t, source)
	f.await(r)
	f.store.Stop()
	r.AwaitError(f.t, anyError)
	f.awaitAttempts(r, 2)
	stop()
	requireNoGoroutines(f, present)

	r, stop = followUntil(f.t, source)
	r.AwaitError(f.t, anyError)
	stop()
	requireNoGoroutines(f, present)
	assert.Empty(f.t, r.Changes())
}

// requireNoGoroutines fails if goroutines are left beside those that were there before.
func requireNoGoroutines(f *fixture, before goleak.Option) {
	f.t.Helper()
	var left error
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if left = goleak.Find(before); left == nil {
			return
		}
	}
	require.NoError(f.t, left, "goroutines that are left after Run has returned")
}

func secondRunReadsAnew(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", limited("b", 1))
	source := f.open()
	for i := range 3 {
		r, stop := followUntil(f.t, source)
		f.await(r)
		assert.True(f.t, r.Changes()[0].Complete)
		assert.Len(f.t, r.Changes()[0].Documents, len(f.want))
		f.put("b.yaml", limited("b", 10*i+2))
		f.await(r)
		stop()
		// What happens between two runs is seen by the second.
		f.put("a.yaml", limited("a", i+2))
		if i == 1 {
			f.remove("b.yaml")
		}
	}
}

func twoRunsAtOnceAreIndependent(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	source := f.open()
	first, stop := followUntil(f.t, source)
	second := Follow(f.t, source)
	f.await(first)
	f.await(second)
	f.put("a.yaml", limited("a", 2))
	f.await(first)
	f.await(second)
	stop()
	f.put("b.yaml", limited("b", 1))
	f.await(second)
}
