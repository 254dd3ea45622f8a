package recorder_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
)

func TestTheRecorderIsOnWhileAnybodyNeedsIt(t *testing.T) {
	t.Parallel()
	var s recorder.Switch
	s.Init(1<<16, false, clock.NewVirtual(time.Unix(1_800_000_000, 0)))
	assert.Nil(t, s.Load())
	first := s.Start()
	require.NotNil(t, first)
	assert.Same(t, first, s.Start())
	s.Stop()
	assert.Same(t, first, s.Load())
	s.Stop()
	assert.Nil(t, s.Load())
	assert.NotSame(t, first, s.Start(), "what was recorded before is gone")
}
