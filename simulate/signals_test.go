package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// readings runs a load without rules and returns what the signals show at the
// start of each second, before anything else of that instant.
func readings(t *testing.T, load Load, seconds int) []reading {
	t.Helper()
	require.Empty(t, load.Validate())
	var list []reading
	var s *simulation
	s = newSimulation(load, Options{Duration: time.Duration(seconds) * time.Second, Progress: func(_, _ time.Duration) {
		list = append(list, s.readSignals())
	}})
	defer s.engine.Close()
	require.NoError(t, s.engine.Load(rules.Set{}))
	require.NoError(t, s.run(t.Context()))
	return list
}

func TestSignalsHoldUntilTheNext(t *testing.T) {
	t.Parallel()
	load := Load{
		Streams: []Stream{{Resource: "r", Rate: 1}},
		Signals: []Signal{
			{At: 2 * time.Second, Memory: pointerTo(0.5)},
			{At: 3 * time.Second, CPU: pointerTo(0.9), Load: pointerTo(7)},
			{At: 3500 * time.Millisecond, CPU: pointerTo(0)},
		},
	}
	assert.Equal(t, []reading{{}, {memory: 0.5}, {0.9, 0.5, 7}, {0, 0.5, 7}}, readings(t, load, 4))
}

func TestCPUIsTheUtilisationOfTheServersUnlessGiven(t *testing.T) {
	t.Parallel()
	load := Load{
		Streams: []Stream{
			{Resource: "r", Rate: 5, Until: 2 * time.Second},                 // 5 × 100 ms on 2 workers
			{Resource: "s", Times: []time.Duration{1500 * time.Millisecond}}, // 1 s on one worker
			{Resource: "free", Times: []time.Duration{0}, ServiceTime: 1e9},  // nobody's work
			{Resource: "s", Times: []time.Duration{3000 * time.Millisecond}}, // another second of work
		},
		Servers: []Server{
			{Resources: []string{"r"}, Workers: 2, Service: Service{Mean: 100 * time.Millisecond}},
			{Resources: []string{"s"}, Workers: 1, Service: Service{Mean: time.Second}},
		},
	}
	var got []float64
	for _, r := range readings(t, load, 5) {
		got = append(got, r.cpu)
	}
	assert.InDeltaSlice(t, []float64{0.5 / 3, (0.5 + 0.5) / 3, 0.5 / 3, 1.0 / 3, 0}, got, 1e-12)

	load.Signals = []Signal{{CPU: pointerTo(0.3)}}
	assert.InDelta(t, 0.3, readings(t, load, 1)[0].cpu, 0)
}
