package overload

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// Few scenarios have so few calls that they can be run under the race detector, and not many so few that they are run
// without being asked for.
const mostUnderRace, mostUsually = 30_000, 70_000

func TestLatencyReachesTheGoals(t *testing.T) { testGoals(t, scenarios()) }

// testGoals runs scenarios under the strategy latency, each with the seeds that it says. A
// goal that is not on the list of the missed ones has to be reached, one that is on it has
// to be missed with a seed at least.
func testGoals(t *testing.T, list []scenario) {
	latency := theProtection(t, "latency")
	missed := missedSoFar()
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			calls := s.expectedCalls() * float64(s.seeds)
			if raceEnabled && calls > mostUnderRace {
				t.Skip("it has too many calls for the race detector")
			}
			if calls > mostUsually {
				longtest.Skip(t, "the scenarios with fewer calls")
			}
			t.Parallel()
			r, err := runScenario(t.Context(), s, latency, 0)
			require.NoError(t, err)
			for i, g := range s.goals {
				got := fmt.Sprintf("%s: want %s, got %s%s", g.name, g.want(), g.number(r.mean(i)), g.each(r.values[i]))
				if missed[goalName(s, g)] {
					assert.False(t, r.reachedByAll(i), "take it off the list missedSoFar: it is reached: %s", got)
				} else {
					assert.True(t, g.reached(r.mean(i)), got)
				}
			}
		})
	}
}

func theProtection(t *testing.T, name string) protection {
	t.Helper()
	list, err := named(protections(), name)
	require.NoError(t, err)
	return list[0]
}

// reachedByAll tells whether a goal is reached with every seed.
func (r *report) reachedByAll(goal int) bool {
	return !slices.ContainsFunc(r.values[goal], func(v float64) bool { return !r.scenario.goals[goal].reached(v) })
}

func TestRunsOfAScenarioAreRepeatable(t *testing.T) {
	latency := theProtection(t, "latency")
	for _, s := range scenarios() {
		if s.name != "cold start at 3 ×" {
			continue
		}
		first, err := simulateScenario(t.Context(), s, latency, 7)
		require.NoError(t, err)
		second, err := simulateScenario(t.Context(), s, latency, 7)
		require.NoError(t, err)
		assert.Equal(t, first.calls, second.calls)
		other, err := simulateScenario(t.Context(), s, latency, 8)
		require.NoError(t, err)
		assert.NotEqual(t, first.calls, other.calls)
	}
}

func TestDocsAreWrittenBetweenTheMarks(t *testing.T) {
	folder := t.TempDir()
	page := filepath.Join(folder, "overload.md")
	require.ErrorIs(t, writeDocs(t.Context(), folder, nil, nil, nil, 1), os.ErrNotExist)
	require.NoError(t, os.WriteFile(page, []byte("nothing\n"), 0o600))
	require.ErrorContains(t, writeDocs(t.Context(), folder, nil, nil, nil, 1), "<!-- bench:overload -->")
	require.NoError(t, os.WriteFile(page, []byte("before\n"+sectionBegins+"old\n"+sectionEnds+"\nafter\n"), 0o600))

	cold := scenarios()[:0]
	for _, s := range scenarios() {
		if s.name == "cold start at 3 ×" {
			cold = append(cold, s)
		}
	}
	picture := pictures()[0]
	picture.scenario = "cold start at 3 ×"
	protections, err := named(protections(), "fixed,fixed-3x")
	require.NoError(t, err)
	for range 2 { // the second time changes nothing
		require.NoError(t, writeDocs(t.Context(), folder, cold, []image{picture}, protections, 1))
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.Regexp(t, `^before
<!-- bench:overload -->

\| scenario \| goal \| want \| fixed \| fixed-3x \|
\|---\|---\|---\|---\|---\|
\| cold start at 3 × \| goodput, 2–5 s \| ≥ 0.85 \| \*\*0.9\d*\*\* \| 0.\d* \|
\| \*\*goals reached\*\* \| \| 1 \| 1 \| 0 \|

<!-- /bench:overload -->
after
$`, string(text))
	}
	svg, err := os.ReadFile(filepath.Join(folder, "images", "overload-steps.svg"))
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	assert.NotContains(t, string(svg), "NaN")
	assert.Equal(t, 4, strings.Count(string(svg), `<path class="line0"`), "two graphs for each protection")
}

// What is known of fixed limits shows that goals can be missed and reached.
func TestFixedLimitsReachSomeGoalsAndMissOthers(t *testing.T) {
	for name, reached := range map[string]map[string]bool{
		"none":     {"1 call per second": true, "cold start at 3 ×": false},
		"fixed":    {"1 call per second": true, "cold start at 3 ×": true, "0.8 ×": false},
		"fixed-3x": {"1 call per second": true, "cold start at 3 ×": false},
	} {
		p := theProtection(t, name)
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
	require.NoError(t, Run(t.Context(), []string{"-run", "1 call", "-protect", "fixed,none"}, &out))
	assert.Contains(t, out.String(), "goals reached")
	err := Run(t.Context(), []string{"-run", "cold", "-protect", "none", "-seeds", "1"}, io.Discard)
	require.ErrorIs(t, err, errMissed)
}

func TestProgramExplainsABadCommandLine(t *testing.T) {
	for args, complaint := range map[string]string{
		"-run xyz":          "matches no scenario",
		"-run (":            "missing closing",
		"-protect nonsense": `there is no "nonsense"`,
		"-seeds -1":         "must be 1 or more",
		"-rules missing":    "no such file",
		"-docs folder":      "not defined: -docs", // the table has a column for each library
	} {
		err := Run(t.Context(), strings.Fields(args), io.Discard)
		require.Error(t, err, args)
		assert.Contains(t, err.Error(), complaint, args)
	}
}

func TestOutcomeMeasuresWhatClientsGet(t *testing.T) {
	o := outcome{service: reference(), duration: 2 * second}
	for i := range 100 {
		start := float64(i) / 100
		o.calls = append(o.calls, call{arrived: start, ended: start + float64(i+1)/1000, good: i < 80, refused: i >= 90, priority: rule.Priority(i % 2).String()})
	}
	assert.InDelta(t, 0.1, refused(&o), 1e-9)
	assert.InDelta(t, 0.2, lost(0)(&o), 1e-9)
	assert.InDelta(t, 80.0/800, goodput(0, second)(&o), 1e-9)
	assert.InDelta(t, 0.8, useful(0, second)(&o), 1e-9)
	assert.InDelta(t, 0.090, o.latency(span{0, 2 * second}, 99), 1e-9)
	assert.InDelta(t, 0.8, served(rule.PriorityNormal, 0, second)(&o), 1e-9)
	assert.InDelta(t, 0, worstSecond(0, 2*second)(&o), 1e-9)
	assert.InDelta(t, 1, settled(0, 75*1e6)(&o), 1e-9)
	assert.InDelta(t, 0, settled(0, second)(&o), 1e-9)
}
