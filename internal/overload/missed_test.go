package overload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// missedSoFar are the goals that the strategy latency misses, by goalName. The page
// docs/overload.md says of each why.
func missedSoFar() map[string]bool {
	missed := make(map[string]bool)
	for _, name := range []string{
		// Below capacity.
		"0.8 ×: refused",
		"0.9 ×: refused",
		"0.9 ×, 64 workers: refused",
		"0.8 ×, bimodal: refused or late",
		"B3",   // deploy-below-capacity
		"D1.9", // mixed-0.9
		"E7",   // bursts

		// Services that are slow, or get their load at once, at the start.
		"0.8 ×, service of 100ms: refused",
		"0.8 ×, service of 1s: refused",

		// After faults.
		"stall of 2 s at 0.7 ×: goodput / demand, 5 s after",
		"service × 100 for 10 s at 0.7 ×: goodput / demand, 5 s after",
		"service × 100 for 10 s at 0.7 ×: useful, last 5 s",
		"B8", // remote-part-starts

		// Several classes above capacity.
		"3 ×, 64 workers: goodput",
		"M3",       // many-step
		"D4.5",     // mixed-3x
		"B4", "B5", // deploy-above-capacity
		"D6", // processors-3x
		"P1", // priorities

		// Pools of their own under the limit.
		"F1",  // half-share-a-pool
		"C11", // two-pools-overloaded

		// Work of processors and waits for remote services under one limit.
		"X3",         // endpoints
		"Y3",         // endpoints-computing
		"W33", "W34", // ordinary-processor-and-remote
	} {
		missed[name] = true
	}
	return missed
}

// goalName is the name by which a goal is listed: of scenes its own name, which is the only
// one, else with that of the scenario.
func goalName(s scenario, g goal) string {
	if s.isScene() {
		name, _, _ := strings.Cut(g.name, " ")
		return name
	}
	return s.name + ": " + g.name
}

// everything returns all scenarios and scenes.
func everything(t *testing.T) []scenario {
	t.Helper()
	all, err := sceneList("")
	require.NoError(t, err)
	return all
}

func TestGoalsHaveNamesOfTheirOwnAndThoseMissedAreKnown(t *testing.T) {
	known := make(map[string]bool)
	for _, s := range everything(t) {
		assert.True(t, s.title != "" || !s.isScene(), "%s has no title", s.name)
		for _, g := range s.goals {
			name := goalName(s, g)
			assert.False(t, known[name], "%s: two goals have this name", name)
			known[name] = true
		}
	}
	for name := range missedSoFar() {
		assert.True(t, known[name], "there is no goal %s: take it off the list", name)
	}
}

// The page names every scenario of which a goal is missed, and no other.
func TestPageSaysWhatIsMissed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "overload.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## What is missed\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	missed := missedSoFar()
	for _, s := range everything(t) {
		misses := false
		for _, g := range s.goals {
			misses = misses || missed[goalName(s, g)]
		}
		assert.Equal(t, misses, strings.Contains(section, "`"+s.name+"`"), "%s", s.name)
	}
}
