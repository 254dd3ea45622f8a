package chart_test

import (
	"encoding/xml"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/cmd/penstock/internal/chart"
	"github.com/penstock-go/penstock/simulate"
)

// element is one of an SVG document.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e element) number(t require.TestingT, name string) float64 {
	v, err := strconv.ParseFloat(e.attr(name), 64)
	require.NoError(t, err, name)
	require.False(t, math.IsNaN(v) || math.IsInf(v, 0), name)
	return v
}

// all returns the elements of a name and, unless it is empty, a class.
func (e element) all(name, class string) []element {
	var found []element
	if e.XMLName.Local == name && (class == "" || e.attr("class") == class) {
		found = append(found, e)
	}
	for _, child := range e.Children {
		found = append(found, child.all(name, class)...)
	}
	return found
}

func (e element) texts() []string {
	var texts []string
	for _, text := range e.all("text", "") {
		texts = append(texts, text.Text)
	}
	return texts
}

func draw(t require.TestingT, title string, result simulate.Result) element {
	var b strings.Builder
	require.NoError(t, chart.SVG(&b, title, result))
	var svg element
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &svg), b.String())
	return svg
}

func TestAPictureShowsEveryNumber(t *testing.T) {
	t.Parallel()
	svg := draw(t, "load.yaml under rules/", scenes()["warmup"])
	assert.Equal(t, "svg", svg.XMLName.Local)
	assert.Equal(t, "load.yaml under rules/", svg.all("title", "")[0].Text)
	assert.Equal(t, "orders:create: of 40,000 calls, 14,437 passed and 25,563 were blocked; ceiling 333.4–1,000.4 tokens per second.",
		svg.all("desc", "")[0].Text)
	assert.Subset(t, svg.texts(), []string{
		"load.yaml under rules/", "orders:create", "passed", "blocked", "offered", "ceiling, tokens per second",
		"calls per second", "seconds", "0", "500", "2,000", "20",
	})
	assert.Len(t, svg.all("rect", "passed"), 20+1, "a bar for each second, and the legend")
	assert.Len(t, svg.all("rect", "blocked"), 20+1)
	assert.Len(t, svg.all("circle", "offered-dot"), 20+1)
	assert.Len(t, svg.all("path", "ceiling"), 1+1)
	assert.Equal(t, "second 3: 2,000 offered, 387 passed (0 of them after a wait), 1,613 blocked, ceiling 387.4", svg.all("title", "")[4].Text)
}

func TestEveryNumberInAPictureIsOne(t *testing.T) {
	t.Parallel()
	for name, result := range scenes() {
		var b strings.Builder
		require.NoError(t, chart.SVG(&b, name, result))
		assert.NotContains(t, b.String(), "NaN", name)
		assert.NotContains(t, b.String(), "Inf", name)
		assert.NotContains(t, b.String(), "%!", name)
	}
}

func TestBarsAreAsHighAsTheirNumbers(t *testing.T) {
	t.Parallel()
	svg := draw(t, "", scenes()["warmup"])
	bars := svg.all("rect", "passed")[1:]
	full := bars[19].number(t, "height")
	assert.InDelta(t, 333.0/1000, bars[0].number(t, "height")/full, 1e-3)
	assert.InDelta(t, 856.0/1000, bars[10].number(t, "height")/full, 1e-3)
	blocked := svg.all("rect", "blocked")[1]
	assert.InDelta(t, bars[0].number(t, "y"), blocked.number(t, "y")+blocked.number(t, "height"), 0.02, "what was blocked stands on what passed")
}

func TestAPictureNamesWhatIsOffTheScale(t *testing.T) {
	t.Parallel()
	assert.Contains(t, draw(t, "", scenes()["offscale"]).texts(), "the ceiling, up to 5,000, is above the chart")
	assert.Contains(t, draw(t, "", scenes()["long"]).texts(), "calls per second, mean of 4 s")
}

func TestNamesCannotBreakAPicture(t *testing.T) {
	t.Parallel()
	svg := draw(t, "<script>&\x00", scenes()["resources"])
	assert.Empty(t, svg.all("script", ""))
	assert.Contains(t, svg.texts(), `<GET> "/a" & b`+"\ufffd[31m")
}

// anyStates draws changes of state of up to two rules, in order of time.
func anyStates(t *rapid.T, resources []string, seconds int) []simulate.StateChange {
	times := rapid.SliceOfN(rapid.Float64Range(0, float64(seconds)+5), 0, 30).Draw(t, "changes")
	slices.Sort(times)
	var list []simulate.StateChange
	states := map[string]string{"a": "closed", "b": "closed"}
	for _, at := range times {
		rule := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rule")
		to := rapid.SampledFrom([]string{"open", "closed", "halfOpen"}).Draw(t, "to")
		list = append(list, simulate.StateChange{T: at, Resource: resources[0], Rule: rule, From: states[rule], To: to})
		states[rule] = to
	}
	return list
}

// bands returns the bands of a picture, without those of the legend: where each
// begins and ends in seconds, and its state.
func bands(t require.TestingT, svg element, seconds float64) (list []string) {
	for _, group := range svg.all("g", "") {
		if len(group.Children) < 2 || group.Children[0].XMLName.Local != "title" || group.Children[1].attr("height") != "16" {
			continue
		}
		band := group.Children[1]
		from := band.number(t, "x") / 824 * seconds
		list = append(list, fmt.Sprintf("%.1f–%.1f %s", from, from+band.number(t, "width")/824*seconds, band.attr("class")))
	}
	return list
}

func TestStatesAreBandsFromChangeToChange(t *testing.T) {
	t.Parallel()
	svg := draw(t, "", scenes()["breaker"])
	assert.Equal(t, []string{
		"0.0–5.4 closed", "5.4–10.4 open", "10.4–14.0 open", "14.0–20.0 closed",
		"0.0–6.0 closed", "6.0–12.0 halfOpen", "12.0–20.0 other",
	}, bands(t, svg, 20), "the state that lasts no time is not drawn, nor a change after the end")
	assert.Subset(t, svg.texts(), []string{
		"pay-errors (breaker)", "pay-slow (breaker)", "closed", "halfOpen", "open", "calls in flight, up to 12", "12",
	})
	assert.Len(t, svg.all("path", "in-flight"), 1, "of the resource that has any")
	assert.Contains(t, svg.all("desc", "")[0].Text, "pay: of 2,000 calls, 1,140 passed and 860 were blocked; ceiling – tokens per second. "+
		"40 calls failed; up to 12 were in flight. pay-errors (breaker) changed its state 4 times. pay-slow (breaker) changed its state 2 times.")
	assert.NotContains(t, draw(t, "", scenes()["short"]).texts(), "halfOpen", "no legend without states")
}

// areas returns the heights of the areas of a graph below the text that begins so, in
// pixels from the axis, and whether a line is drawn with them.
func areas(t require.TestingT, svg element, title string) (heights []float64, line bool) {
	for _, group := range svg.all("g", "") {
		for i, child := range group.Children {
			if !strings.HasPrefix(child.Text, title) {
				continue
			}
			bottom := 0.0
			for _, next := range group.Children[i+1:] {
				switch next.attr("class") {
				case "in-flight":
					for _, part := range regexp.MustCompile(`M[\d.]+ ([\d.]+)V([\d.]+)H`).FindAllStringSubmatch(next.attr("d"), -1) {
						from, err := strconv.ParseFloat(part[1], 64)
						require.NoError(t, err)
						to, err := strconv.ParseFloat(part[2], 64)
						require.NoError(t, err)
						bottom = from
						heights = append(heights, from-to)
					}
				case "limit":
					line = true
				case "axis":
					assert.NotZero(t, bottom)
					return heights, line
				}
			}
		}
	}
	require.Fail(t, "there is no graph", title)
	return nil, false
}

func TestLimitsAreDrawnWithTheCallsInFlight(t *testing.T) {
	t.Parallel()
	svg := draw(t, "", scenes()["adaptive"])
	heights, line := areas(t, svg, "all (adaptive): calls in flight, up to 8; dashed: limit, 8–20")
	assert.True(t, line)
	require.Len(t, heights, 20)
	assert.InDelta(t, 0, heights[0], 0.01)
	assert.InDelta(t, 40*8.0/20, heights[19], 0.01, "on the scale of the limit")
	heights, line = areas(t, svg, "own (adaptive): calls in flight, up to 2")
	assert.False(t, line, "it has no limit")
	assert.InDelta(t, 40, heights[0], 0.01)
	heights, _ = areas(t, svg, "all (adaptive): shed per second, normal, up to 19")
	assert.InDelta(t, 0, heights[4], 0.01)
	assert.InDelta(t, 40*10.0/19, heights[10], 0.01)
	heights, _ = areas(t, svg, "signal cpu, up to 1")
	assert.InDelta(t, 8, heights[0], 0.01)

	texts := strings.Join(svg.texts(), "\n")
	assert.Equal(t, 1, strings.Count(texts, "all (adaptive): calls in flight"), "what resources share is drawn once")
	assert.NotContains(t, texts, "shed per second, critical", "none was shed")
	assert.Contains(t, svg.all("desc", "")[0].Text, "all (adaptive): calls waiting, up to 3. all (adaptive): shed per second, low, up to 150.")
	assert.NotContains(t, strings.Join(draw(t, "", scenes()["breaker"]).texts(), "\n"), "dashed")
}

func TestSignalThatIsNotKnownHasAnEmptyGraph(t *testing.T) {
	t.Parallel()
	svg := draw(t, "", scenes()["adaptive"])
	assert.Contains(t, svg.texts(), "signal memory: unknown")
}

func TestABandOfManyChangesIsThinned(t *testing.T) {
	t.Parallel()
	result := simulate.Result{Seconds: scenes()["short"].Seconds}
	states := []string{"closed", "open"}
	for i := range 10_000 { // open for a fifth of a millisecond in each
		result.States = append(result.States, simulate.StateChange{
			T: 0.0003*float64(i/2) + 0.0002*float64(i%2), Resource: "r", Rule: "a", From: states[i%2], To: states[1-i%2],
		})
	}
	svg := draw(t, "", result)
	assert.Less(t, len(bands(t, svg, 3)), 900)
}

func TestARuleOfNoSingleResourceIsShownWithAll(t *testing.T) {
	t.Parallel()
	result := scenes()["breaker"]
	for i := range result.States {
		result.States[i].Resource = "all together"
	}
	svg := draw(t, "", result)
	assert.Len(t, bands(t, svg, 20), 2*7)
}

func TestWhateverIsDrawnIsWithinThePicture(t *testing.T) {
	t.Parallel()
	second := rapid.Custom(func(t *rapid.T) simulate.Second {
		s := simulate.Second{
			Offered: rapid.IntRange(0, 1e7).Draw(t, "offered"), Passed: rapid.IntRange(0, 1e7).Draw(t, "passed"),
			Blocked: rapid.IntRange(0, 1e7).Draw(t, "blocked"), InFlight: rapid.IntRange(0, 1e7).Draw(t, "in flight"),
		}
		if rapid.Bool().Draw(t, "limited") {
			s.Ceiling = new(rapid.Float64Range(0, 1e9).Draw(t, "ceiling"))
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		resources := rapid.SliceOfNDistinct(rapid.String(), 1, 3, rapid.ID).Draw(t, "resources")
		seconds := rows(rapid.IntRange(1, 400).Draw(t, "seconds"), resources, func(i, _ int) simulate.Second {
			if i < 5 {
				return second.Draw(t, fmt.Sprint("second ", i))
			}
			return simulate.Second{Passed: i}
		})
		result := simulate.Result{Seconds: seconds, States: anyStates(t, resources, len(seconds)/len(resources))}
		svg := draw(t, rapid.String().Draw(t, "title"), result)
		for _, bar := range append(svg.all("rect", "passed"), svg.all("rect", "blocked")...)[1:] {
			assert.Greater(t, bar.number(t, "width"), 0.0)
			assert.GreaterOrEqual(t, bar.number(t, "height"), 0.0)
			assert.LessOrEqual(t, bar.number(t, "y")+bar.number(t, "height"), 200.011)
			assert.LessOrEqual(t, bar.number(t, "x")+bar.number(t, "width"), 824.011)
		}
		for _, class := range []string{"open", "closed", "halfOpen"} {
			for _, band := range svg.all("rect", class) {
				assert.GreaterOrEqual(t, band.number(t, "width"), 0.0)
				assert.LessOrEqual(t, band.number(t, "x")+band.number(t, "width"), 824.011)
			}
		}
		for _, dot := range svg.all("circle", "offered-dot") {
			assert.GreaterOrEqual(t, dot.number(t, "cy"), -4.01)
		}
		var b strings.Builder
		require.NoError(t, chart.Text(&b, result, chart.Terminal{}))
	})
}
