package overload

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/simulate"
)

func TestLatencyReachesTheGoalsOfScenes(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("scenes have many calls")
	}
	scenes, err := embeddedScenes()
	require.NoError(t, err)
	testGoals(t, scenes)
}

// aScene has a class that is short of workers, one that is not, and one that takes long.
const aScene = `
title: "some"
duration: 20s
seeds: 2
rules: {flow: [{resource: busy, limit: 1000000}]}
load:
  streams:
    - {resource: busy, rate: 300, shape: even, timeout: 200ms}
    - {resource: quick, rate: 100, until: 10s, priority: high, inbound: false}
    - {resource: slow, times: [1, 1500ms]}
  servers:
    - {name: w, resources: [busy, quick], workers: 2, service: {mean: 10ms}, services: [{resources: quick, mean: 1ms}]}
    - {name: far, resources: slow, unlimited: true, service: {mean: 5s}}
goals:
  - {name: g1, class: [quick, slow], refused: "<= 0.1%"}
  - {name: g2, class: "b*", goodput: ">= 0.9", from: 5s, until: 10s}
  - {name: g3, class: quick, p99: "<= 30ms"}
  - {worst: ">= 0.5"}
`

func TestASceneIsRead(t *testing.T) {
	s, err := parseScene("scenes/some.yaml", []byte(aScene))
	require.NoError(t, err)
	assert.Equal(t, "some", s.name)
	assert.Equal(t, 20*second, s.duration)
	assert.Equal(t, []string{"busy", "quick", "slow"}, s.classNames())
	assert.Len(t, s.rules.Flow, 1)
	var names, wants []string
	for _, g := range s.goals {
		names, wants = append(names, g.name), append(wants, g.want())
	}
	assert.Equal(t, []string{"g1 quick, slow: refused", "g2 b*: goodput, 5s–10s", "g3 quick: p99", "worst"}, names)
	assert.Equal(t, []string{"≤ 0.10%", "≥ 0.9", "≤ 30ms", "≥ 0.5"}, wants)
	load := s.loadWith(7)
	assert.Equal(t, uint64(7), load.Seed)
	assert.Equal(t, []bool{true, false, true}, []bool{load.Streams[0].Inbound, load.Streams[1].Inbound, load.Streams[2].Inbound})
	assert.Equal(t, []simulate.Shape{simulate.Even, simulate.Poisson, ""}, []simulate.Shape{load.Streams[0].Shape, load.Streams[1].Shape, load.Streams[2].Shape})
	// Twice what is under way at the start: 300 × 10 ms + 100 × 1 ms.
	assert.InDelta(t, 2*(3+0.1), rightLimit(s), 1e-9)
}

func TestMistakesInAScene(t *testing.T) {
	for old, test := range map[string]struct{ with, want string }{
		"duration: 20s":              {"", "duration is missing"},
		"seeds: 2":                   {"seed: 2", "seed"},
		"mean: 10ms":                 {"mean: 10 ms", "10 ms"},
		`"<= 30ms"`:                  {`"< 30ms"`, `goals[2] (g3): "< 30ms": must be such as`},
		`p99: "<= 30ms"`:             {`p98: "<= 30ms"`, `unknown measure "p98": must be one of refused`},
		`class: "b*"`:                {`class: "x*"`, `class "x*": no stream calls it`},
		"until: 10s}\n  - {name: g3": {"until: 10m}\n  - {name: g3", "must be a part of the 20s of the scene"},
		`{worst: ">= 0.5"}`:          {`{}`, "has 0 measures: give one of"},
		"workers: 2":                 {"workers: 0", "servers[0].workers is 0"},
		"limit: 1000000":             {"limt: 1", `unknown field "limt"`},
	} {
		require.Contains(t, aScene, old)
		_, err := parseScene("some.yaml", []byte(strings.Replace(aScene, old, test.with, 1)))
		require.Error(t, err, old)
		assert.Contains(t, err.Error(), test.want, old)
		assert.Contains(t, err.Error(), "some.yaml", old)
	}
}

func TestScenesOfAFileOrFolder(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "some.yaml")
	require.NoError(t, os.WriteFile(file, []byte(aScene), 0o600))
	for _, name := range []string{folder, file} {
		scenes, err := scenesOf(name)
		require.NoError(t, err)
		require.Len(t, scenes, 1)
		assert.Equal(t, "some", scenes[0].name)
	}
	_, err := scenesOf(filepath.Join(folder, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	rules := filepath.Join(folder, "rules")
	require.NoError(t, os.WriteFile(rules, []byte(`isolation: [{match: "*", limit: 2}]`), 0o600))
	var out strings.Builder
	args := []string{"-scenes", file, "-run", "g3|worst", "-rules", rules, "-protect", "none,fixed", "-v"}
	require.ErrorIs(t, Run(t.Context(), args, &out), errMissed)
	assert.Regexp(t, `want +`+rules+` +none +fixed`, out.String())
	assert.Contains(t, out.String(), "g3 quick: p99")
	assert.NotContains(t, out.String(), "g1")
	assert.Regexp(t, ` 19 +busy +300 `, out.String(), "each second is written")
}

// What is possible is divided by priority, then evenly by what calls take.
func TestDivideIsMaxMinFairByPriority(t *testing.T) {
	rates := func(servers int, flows ...flow) (list []float64) {
		divide(flows, servers)
		for _, f := range flows {
			list = append(list, f.rate)
		}
		return list
	}
	one := func(priority string, demand, need float64) flow {
		return flow{priority: priority, demand: demand, needs: []float64{need}}
	}
	const high, normal, low = "high", "normal", "low"
	assert.InDeltaSlice(t, []float64{10, 45, 45.0 / 2}, rates(1, one(normal, 10, 0.01), one(normal, 1000, 0.01), one(normal, 1000, 0.02)), 1e-6)
	assert.InDeltaSlice(t, []float64{30, 70, 0}, rates(1, one(normal, 30, 0.01), one(low, 100, 0.01), one(low, 0, 0.01)), 1e-6)
	assert.InDeltaSlice(t, []float64{0, 100, 500}, rates(1, one(normal, 100, 0.01), one(high, 200, 0.01), one(low, 500, 0)), 1e-6)
	// The first needs both servers. The second has what is left of the first server; of the
	// other one nobody asks for more.
	assert.InDeltaSlice(t, []float64{50, 50, 20}, rates(2,
		flow{priority: normal, demand: 100, needs: []float64{0.01, 0.001}},
		flow{priority: normal, demand: 100, needs: []float64{0.01, 0}},
		flow{priority: normal, demand: 20, needs: []float64{0, 0.01}}), 1e-6)
}

func TestMeasuresOfClasses(t *testing.T) {
	s, err := parseScene("some.yaml", []byte(aScene))
	require.NoError(t, err)
	o := newOutcome(s, s.loadWith(1))
	for i := range 400 { // for 10 s busy could do (2 − 0.1) / 0.01 = 190 calls a second, and does half of it
		for second := range 10 {
			start := float64(second) + float64(i)/400
			o.calls = append(o.calls, call{
				arrived: start, ended: start + 0.01, waited: float64(i%100) / 1000, class: 0, priority: "normal", good: i < 95, refused: i >= 300,
			})
		}
	}
	for i := range 1000 {
		start := float64(i) / 100
		o.calls = append(o.calls, call{arrived: start, ended: start + 0.001*float64(i%100), class: 1, priority: "high", good: true})
	}
	in := span{0, 10 * second}
	for name, want := range map[string]float64{
		"refused": 0.25, "lost": 305.0 / 400, "served": 95.0 / 400, "p99": 0.01, "goodput": 0.5, "worst": 0.5, "worstTenth": 0.5, "worstSecondRefused": 0.25,
		"p99Wait": 0.098, "longestWait": 0.099,
	} {
		measure, _ := measureOf(name, []bool{true, false, false}, in)
		require.NotNil(t, measure, name)
		assert.InDelta(t, want, measure(o), 0.002, name)
	}
	measure, _ := measureOf("goodput", []bool{true, true, true}, in)
	assert.InDelta(t, (0.95+0.1)/2, measure(o), 0.002, "by work: quick had a tenth of a worker, all that it wanted")
	measure, _ = measureOf("p99", []bool{false, true, false}, in)
	assert.InDelta(t, 0.098, measure(o), 0.002)
	measure, _ = measureOf("p99", []bool{false, false, true}, in)
	assert.True(t, math.IsNaN(measure(o)))
	assert.Len(t, measureNames(), 10)
}
