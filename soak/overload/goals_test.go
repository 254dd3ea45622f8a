package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is known of fixed limits shows that goals can be missed and reached.
func TestFixedLimitsReachSomeGoalsAndMissOthers(t *testing.T) {
	for name, reached := range map[string]map[string]bool{
		"none":     {"1 call per second": true, "cold start at 3 ×": false},
		"fixed":    {"1 call per second": true, "cold start at 3 ×": true, "0.8 ×": false},
		"fixed-3x": {"1 call per second": true, "cold start at 3 ×": false},
	} {
		p, ok := findProtection(name)
		require.True(t, ok)
		for _, s := range scenarios() {
			want, known := reached[s.name]
			if !known {
				continue
			}
			r, err := runScenario(t.Context(), s, p, 1)
			require.NoError(t, err)
			assert.Equal(t, want, r.missed() == 0, "%s under %s: %v", s.name, name, r.values)
		}
	}
}

func TestScenariosHaveNamesOfTheirOwnAndGoals(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		assert.False(t, seen[s.name], s.name)
		seen[s.name] = true
		assert.NotEmpty(t, s.goals, s.name)
		assert.Positive(t, s.seeds, s.name)
		load := s.load(s.service)
		load.Servers = append(load.Servers, s.service.server())
		assert.Empty(t, load.Validate(), s.name)
	}
}

func TestProgramWritesATableAndSaysWhatWasMissed(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-run", "1 call", "-protect", "fixed,none"}, &out))
	assert.Contains(t, out.String(), "goals reached")
	err := run(t.Context(), []string{"-run", "cold", "-protect", "none", "-seeds", "1"}, io.Discard)
	require.ErrorIs(t, err, errMissed)
}

func TestProgramExplainsABadCommandLine(t *testing.T) {
	for args, complaint := range map[string]string{
		"-run xyz":          "matches no scenario",
		"-run (":            "missing closing",
		"-protect nonsense": `there is no "nonsense"`,
		"-seeds -1":         "must be 1 or more",
		"-rules missing":    "no such file",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard)
		require.Error(t, err, args)
		assert.Contains(t, err.Error(), complaint, args)
	}
}

func TestOutcomeMeasuresWhatClientsGet(t *testing.T) {
	o := outcome{service: reference(), duration: 2 * second}
	for i := range 100 {
		start := float64(i) / 100
		o.calls = append(o.calls, call{arrived: start, ended: start + float64(i+1)/1000, good: i < 80, refused: i >= 90, priority: fmt.Sprint(i % 2)})
	}
	assert.InDelta(t, 0.1, refused(&o), 1e-9)
	assert.InDelta(t, 0.2, lost(0)(&o), 1e-9)
	assert.InDelta(t, 80.0/800, goodput(0, second)(&o), 1e-9)
	assert.InDelta(t, 0.8, useful(0, second)(&o), 1e-9)
	assert.InDelta(t, 0.090, o.latency(span{0, 2 * second}, 99), 1e-9)
	assert.InDelta(t, 0.8, served("0", 0, second)(&o), 1e-9)
	assert.InDelta(t, 0, worstSecond(0, 2*second)(&o), 1e-9)
	assert.InDelta(t, 1, settled(0, 75*1e6)(&o), 1e-9)
	assert.InDelta(t, 0, settled(0, second)(&o), 1e-9)
}
