package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

func TestSecondHasWhatHappenedInIt(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: quiet})
	defer engine.Close()
	call := func(resource string, took time.Duration) {
		guard, err := engine.Entry(t.Context(), resource)
		require.NoError(t, err)
		virtual.Advance(took)
		guard.Exit()
	}
	call("b", 100*time.Millisecond)
	call("a", time.Second)
	at := virtual.Now()

	var names []string
	for _, s := range engine.Second(at.Add(-time.Second)) {
		names = append(names, s.Resource)
		assert.EqualValues(t, 1, s.Passed)
	}
	assert.Equal(t, []string{"a", "b"}, names)
	second := engine.Second(at)
	require.Len(t, second, 1, "nothing happened on b")
	assert.Zero(t, second[0].Passed)
	assert.EqualValues(t, 1, second[0].Completed)
	assert.Equal(t, time.Second, second[0].MeanResponseTime())
	assert.Empty(t, engine.Second(at.Add(-5*time.Second)))
}
