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
	r, stop := f.followUntil(source)
	f.await(r)
	stop()
	requireNoGoroutines(f, present)

	changes := len(r.Changes())
	f.put("a.yaml", limited("a", 2))
	ctx, cancel := context.WithCancel(f.t.Context())
	cancel()
	again := &Recorder{}
	require.ErrorIs(f.t, source.Run(ctx, again), context.Canceled, "a context that has ended before")
	requireNoGoroutines(f, present)
	assert.Len(f.t, r.Changes(), changes, "nothing is delivered after Run has returned")
}

func runEndsWhileUnreachable(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	source := f.open()
	present := goleak.IgnoreCurrent()
	r, stop := f.followUntil(source)
	f.await(r)
	f.store.Stop()
	r.AwaitDisconnected(f.t)
	f.awaitAttempts(r, 2)
	stop()
	requireNoGoroutines(f, present)

	r, stop = f.followUntil(source)
	r.AwaitDisconnected(f.t)
	stop()
	requireNoGoroutines(f, present)
	assert.Empty(f.t, r.Changes())
}

// requireNoGoroutines fails if goroutines are left beside those that were there before.
func requireNoGoroutines(f *fixture, before goleak.Option) {
	f.t.Helper()
	var left error
	for end := time.Now().Add(f.harness.Patience); time.Now().Before(end); {
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
		r, stop := f.followUntil(source)
		f.await(r)
		first := r.Changes()[0]
		assert.True(f.t, first.Complete)
		assert.Len(f.t, first.Documents, len(f.want))
		for _, d := range first.Documents {
			assert.Equal(f.t, f.want[d.Name], string(d.Data), "nothing of an earlier run is delivered")
		}
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
	first, stop := f.followUntil(source)
	second := f.followSource(source)
	f.await(first)
	f.await(second)
	f.put("a.yaml", limited("a", 2))
	f.await(first)
	f.await(second)
	stop()
	f.put("b.yaml", limited("b", 1))
	f.await(second)
}
