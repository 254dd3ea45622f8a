package serve

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

func TestCallsThatNobodyEndsExpireAFewAtATimeAndAreNotEndedInPlaceOfOthers(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	h := holds{most: 1000}
	key := holdKey{1}
	begin := func(now clock.Instant) *hold {
		guard, err := engine.Entry(t.Context(), "a")
		require.NoError(t, err)
		of := h.hold(key, &guard, now, time.Second)
		require.NotNil(t, of, "at most %d calls", h.most)
		return of
	}
	for range 999 {
		begin(0)
	}
	last := begin(1)
	h.end(key, clock.Instant(time.Second)) // when all but the last are over
	assert.Len(t, h.queue, 1000-expiredAtOnce-1)
	assert.Negative(t, last.place, "another was ended in its place")
	for range 1000 {
		begin(clock.Instant(time.Second))
	}
	h.end(holdKey{2}, clock.Instant(time.Second))
	assert.Len(t, h.queue, 1000)
	assert.Len(t, h.byKey[key], 1000)
}
