package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/chart"
	"github.com/penstock-go/penstock/simulate"
)

// With UPDATE_GOLDEN set, the files are written.
func TestTextLooksAsItDid(t *testing.T) {
	t.Parallel()
	for name, result := range scenes() {
		golden := filepath.Join("testdata", name+".txt")
		got := text(t, result, chart.Terminal{})
		if os.Getenv("UPDATE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, name)
	}
}

func TestTextFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for name, result := range scenes() {
		for _, width := range []int{0, 1, 40, 80, 120, 200} {
			most := max(40, width)
			if width == 0 {
				most = 80
			}
			drawn := text(t, result, chart.Terminal{Width: width})
			if most >= 80 { // the names in the table may be longer
				drawn, _, _ = strings.Cut(drawn, "  offered  ")
			}
			for line := range strings.SplitSeq(drawn, "\n") {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), most, "%s at %d: %s", name, width, line)
			}
		}
	}
}

func TestColoursAddNothingButColours(t *testing.T) {
	t.Parallel()
	codes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, result := range scenes() {
		coloured := text(t, result, chart.Terminal{Colour: true})
		plain := text(t, result, chart.Terminal{})
		assert.NotContains(t, plain, "\x1b", "%s: names cannot steer the terminal", name)
		if len(result.Seconds) > 0 {
			assert.Regexp(t, codes, coloured)
		}
		assert.Equal(t, trimmed(plain), trimmed(codes.ReplaceAllString(coloured, "")), name)
	}
}

func TestWritingFails(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, chart.Text(broken{}, scenes()["short"], chart.Terminal{}), assert.AnError)
	require.ErrorIs(t, chart.SVG(broken{}, "", scenes()["short"]), assert.AnError)
	require.ErrorIs(t, chart.Events(broken{}, []simulate.Event{{}}), assert.AnError)
}

func TestEventsAreALineEach(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	require.NoError(t, chart.Events(&b, []simulate.Event{
		{T: 0, Resource: "r", Outcome: simulate.Pass},
		{T: 0.0005, Resource: "r", Outcome: simulate.Pass, Wait: 0.25},
		{T: 1, Resource: "r", Outcome: simulate.Pass, Wait: 0.5, End: new(1.5)},
		{T: 1, Resource: "r", Outcome: simulate.Pass, Wait: 0.5, End: new(1.75)},
		{T: 1, Resource: "r", Outcome: simulate.Pass, End: new(1.0), Failed: true},
		{T: 2, Resource: "r", Outcome: simulate.Pass, Instance: 12},
		{T: 12.5, Resource: "carts\x1b\tx", Outcome: simulate.Block, Rule: "few", Kind: "flow"},
		{T: 13, Resource: "r", Outcome: simulate.Pass, Attrs: simulate.AttrValues{
			{Name: "user", Value: "a\nb"}, {Name: "id", Value: int64(7)}, {Name: "beta", Value: true},
		}},
	}))
	assert.Equal(t, `
0 s           pass                               r
0.0005 s      pass after 0.25 s                  r
1 s           pass after 0.5 s                   r
1 s           pass after 0.5 s, ended at 1.75 s  r
1 s           pass, failed at 1 s                r
2 s           pass                               r on instance 12
12.5 s        block by flow rule few             carts`+"\ufffd x\n"+`13 s          pass                               r user=a b id=7 beta=true
`, b.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, assert.AnError }

func text(t *testing.T, result simulate.Result, terminal chart.Terminal) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, chart.Text(&b, result, terminal))
	return b.String()
}

func trimmed(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n")
}
