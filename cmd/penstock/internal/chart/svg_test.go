package chart_test

import (
	"encoding/xml"
	"fmt"
	"math"
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

func draw(t require.TestingT, title string, seconds []simulate.Second) element {
	var b strings.Builder
	require.NoError(t, chart.SVG(&b, title, seconds))
	var svg element
	require.NoError(t, xml.Unmarshal([]byte(b.String()), &svg), b.String())
	return svg
}

func TestAPictureShowsAllThereIs(t *testing.T) {
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
	for name, seconds := range scenes() {
		var b strings.Builder
		require.NoError(t, chart.SVG(&b, name, seconds))
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

func TestAPictureSaysWhatDoesNotFitOnIt(t *testing.T) {
	t.Parallel()
	assert.Contains(t, draw(t, "", scenes()["aloft"]).texts(), "the ceiling, up to 5,000, is above the chart")
	assert.Contains(t, draw(t, "", scenes()["long"]).texts(), "calls per second, mean of 4 s")
}

func TestNamesCannotBreakAPicture(t *testing.T) {
	t.Parallel()
	svg := draw(t, "<script>&\x00", scenes()["resources"])
	assert.Empty(t, svg.all("script", ""))
	assert.Contains(t, svg.texts(), `<GET> "/a" & b`+"\ufffd[31m")
}

func TestWhateverIsDrawnIsWithinThePicture(t *testing.T) {
	t.Parallel()
	second := rapid.Custom(func(t *rapid.T) simulate.Second {
		s := simulate.Second{
			Offered: rapid.IntRange(0, 1e7).Draw(t, "offered"), Passed: rapid.IntRange(0, 1e7).Draw(t, "passed"),
			Blocked: rapid.IntRange(0, 1e7).Draw(t, "blocked"),
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
		svg := draw(t, rapid.String().Draw(t, "title"), seconds)
		for _, bar := range append(svg.all("rect", "passed"), svg.all("rect", "blocked")...)[1:] {
			assert.Greater(t, bar.number(t, "width"), 0.0)
			assert.GreaterOrEqual(t, bar.number(t, "height"), 0.0)
			assert.LessOrEqual(t, bar.number(t, "y")+bar.number(t, "height"), 200.01)
			assert.LessOrEqual(t, bar.number(t, "x")+bar.number(t, "width"), 824.01)
		}
		for _, dot := range svg.all("circle", "offered-dot") {
			assert.GreaterOrEqual(t, dot.number(t, "cy"), -4.01)
		}
		var b strings.Builder
		require.NoError(t, chart.Text(&b, seconds, chart.Terminal{}))
	})
}
