package monitoring_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-analyze/charts"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

var draw = flag.String("draw", "", "the file into which the dashboard is drawn, as SVG")

// line is one series of a panel.
type line struct {
	name   string
	points map[int64]float64 // by milliseconds
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// linesOf returns the series of a query with the names that Grafana gives them.
func linesOf(result promql.Matrix, legend string) (lines []line) {
	for _, series := range result {
		l := line{points: make(map[int64]float64)}
		l.name = legendLabel.ReplaceAllStringFunc(legend, func(label string) string {
			return series.Metric.Get(legendLabel.FindStringSubmatch(label)[1])
		})
		for _, p := range series.Floats {
			l.points[p.T] = p.F
		}
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return lines
}

// isMore says whether the line has a point above 0.
func (l line) isMore() bool {
	for _, value := range l.points {
		if value > 0 {
			return true
		}
	}
	return false
}

// Sizes of the picture, in pixels: a column and a row of the dashboard's grid.
const (
	columnWidth = 62
	rowHeight   = 33
	gap         = 8
)

// picture draws the panels where they are in the dashboard.
func picture(t *testing.T, panels []panel, shown map[int][]line, db *database) []byte {
	t.Helper()
	height := 0
	for _, p := range panels {
		height = max(height, (p.GridPos.Y+p.GridPos.H)*rowHeight)
	}
	theme := charts.GetTheme(charts.ThemeGrafana).WithBackgroundColor(charts.Color{R: 17, G: 18, B: 23, A: 255})
	board := charts.NewPainter(charts.PainterOptions{
		OutputFormat: charts.ChartOutputSVG, Width: 24*columnWidth + gap, Height: height + gap, Theme: theme,
	})
	board.FilledRect(0, 0, board.Width(), board.Height(), theme.GetBackgroundColor(), theme.GetBackgroundColor(), 0)
	var times []int64
	for at := db.begin.Add(time.Minute); !at.After(db.end); at = at.Add(interval) {
		times = append(times, at.UnixMilli())
	}
	for _, p := range panels {
		place := p.GridPos
		box := charts.NewBox(place.X*columnWidth+gap, place.Y*rowHeight+gap, (place.X+place.W)*columnWidth, (place.Y+place.H)*rowHeight)
		d := drawing{panel: p, painter: board.Child(charts.PainterBoxOption(box)), theme: theme, lines: shown[p.ID], times: times}
		require.NoError(t, d.draw(), p.Title)
	}
	svg, err := board.Bytes()
	require.NoError(t, err)
	return svg
}

// drawing draws one panel.
type drawing struct {
	panel   panel
	painter *charts.Painter
	theme   charts.ColorPalette
	lines   []line
	times   []int64
}

func (d *drawing) font(size float64) charts.FontStyle {
	return charts.FontStyle{FontSize: size, FontColor: d.theme.GetTitleTextColor()}
}

func (d *drawing) draw() error {
	if d.panel.Type == "row" {
		d.painter.Text(d.panel.Title, 2, d.painter.Height()-6, 0, d.font(12))
		return nil
	}
	back := charts.Color{R: 24, G: 27, B: 31, A: 255}
	d.painter.FilledRect(0, 0, d.painter.Width(), d.painter.Height(), back, charts.Color{R: 44, G: 48, B: 54, A: 255}, 1)
	d.painter.Text(d.panel.Title, 10, 20, 0, d.font(10))
	switch d.panel.Type {
	case "stat":
		d.stat()
		return nil
	case "state-timeline":
		d.states()
		return nil
	}
	return d.lineChart()
}

// stat shows the highest value of the only line, as the load ends quietly.
func (d *drawing) stat() {
	highest := math.Inf(-1)
	for _, value := range d.lines[0].points {
		highest = max(highest, value)
	}
	d.painter.Text(d.format(highest), 10, 76, 0, charts.FontStyle{FontSize: 26, FontColor: charts.Color{R: 115, G: 191, B: 105, A: 255}})
	d.painter.Text("highest", 10, 98, 0, d.font(8))
}

// maxLines is how many lines the legend has space for.
const maxLines = 8

func (d *drawing) lineChart() error {
	lines := slices.Clone(d.lines)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.highest(), a.highest()) })
	lines = lines[:min(len(lines), maxLines)]
	for len(lines) > 4 && lines[len(lines)-1].highest() == 0 {
		lines = lines[:len(lines)-1]
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	stacked, unknown := d.panel.FieldConfig.Defaults.Custom.Stacking.Mode == "normal", charts.GetNullValue()
	if stacked {
		unknown = 0
	}
	var values [][]float64
	var names []string
	for _, l := range lines {
		values, names = append(values, l.at(d.times, unknown)), append(names, l.name)
	}
	options := charts.NewLineChartOptionWithData(values)
	options.Theme = d.theme.WithBackgroundColor(charts.ColorTransparent)
	options.Padding = charts.Box{Left: 8, Top: 34, Right: 12, Bottom: 6 + d.legend(names)}
	options.Legend.Show = new(false)
	options.XAxis.Labels, options.XAxis.LabelCount = d.clock(), 6
	options.XAxis.LabelFontStyle, options.XAxis.BoundaryGap = d.font(7), new(false)
	options.YAxis = []charts.YAxisOption{{
		Min: new(0.0), Max: new(top(values, stacked)), RangeValuePaddingScale: new(0.0), LabelCount: intervals + 1,
		LabelFontStyle: d.font(7), ValueFormatter: d.format, SplitLineShow: new(true),
	}}
	options.Symbol, options.LineStrokeWidth = charts.Symbol{Shape: charts.SymbolNone}, 1.4
	options.StackSeries, options.FillOpacity = new(stacked), 70
	return d.painter.LineChart(options)
}

// legend writes the names of the lines at the bottom, and returns how high that is.
func (d *drawing) legend(names []string) int {
	const left, rowHeight = 12, 14
	type place struct{ x, row int }
	var places []place
	x, row := left, 0
	for _, name := range names {
		width := d.painter.MeasureText(name, 0, d.font(7)).Width() + 36
		if x+width > d.painter.Width() && x > left {
			x, row = left, row+1
		}
		places = append(places, place{x, row})
		x += width
	}
	for i, at := range places {
		y := d.painter.Height() - 8 - (row-at.row)*rowHeight
		color := d.theme.GetSeriesColor(i)
		d.painter.FilledRect(at.x, y-6, at.x+10, y-3, color, color, 0)
		d.painter.Text(names[i], at.x+15, y, 0, d.font(7))
	}
	return (row + 1) * rowHeight
}

// at returns the values of the line at these times.
func (l line) at(times []int64, unknown float64) []float64 {
	values := make([]float64, len(times))
	for i, at := range times {
		if value, known := l.points[at]; known && !math.IsNaN(value) {
			values[i] = value
		} else {
			values[i] = unknown
		}
	}
	return values
}

// highest returns the highest value of the line.
func (l line) highest() (highest float64) {
	for _, value := range l.points {
		if value > highest {
			highest = value
		}
	}
	return highest
}

// intervals is how many there are between the lines of the axis of values.
const intervals = 3

// top returns where the axis of values ends: at a round number not below any value.
func top(values [][]float64, stacked bool) float64 {
	highest := 0.0
	for i := range values[0] {
		sum := 0.0
		for _, series := range values {
			switch value := series[i]; {
			case value == charts.GetNullValue():
			case stacked:
				sum += value
			default:
				sum = max(sum, value)
			}
		}
		highest = max(highest, sum)
	}
	if highest == 0 {
		return intervals
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/intervals)))
	for _, step := range []float64{1, 2, 2.5, 4, 5} {
		if step*power*intervals >= highest {
			return step * power * intervals
		}
	}
	return 10 * power * intervals
}

// clock returns the labels of the axis of time: minutes since the beginning.
func (d *drawing) clock() (labels []string) {
	for i := range d.times {
		labels = append(labels, fmt.Sprintf("%.0f min", math.Round(1+float64(i)*interval.Minutes())))
	}
	return labels
}

// states draws a bar for each line, in the colors of its states.
func (d *drawing) states() {
	mappings := d.panel.FieldConfig.Defaults.Mappings[0].Options
	colors := map[string]charts.Color{
		"green": {R: 86, G: 166, B: 75, A: 255}, "yellow": {R: 242, G: 204, B: 12, A: 255}, "red": {R: 224, G: 47, B: 68, A: 255},
	}
	const nameWidth, first = 150, 40
	barHeight := min(40, (d.painter.Height()-first-40)/len(d.lines))
	width := float64(d.painter.Width()-nameWidth-12) / float64(len(d.times))
	for row, l := range d.lines {
		y := first + row*(barHeight+8)
		d.painter.Text(l.name, 10, y+barHeight/2+4, 0, d.font(7))
		for from := 0; from < len(d.times); {
			to := from + 1
			for to < len(d.times) && l.points[d.times[to]] == l.points[d.times[from]] {
				to++
			}
			if value, known := l.points[d.times[from]]; known {
				color := colors[mappings[fmt.Sprint(value)].Color]
				d.painter.FilledRect(nameWidth+int(float64(from)*width), y, nameWidth+int(float64(to)*width), y+barHeight, color, color, 0)
			}
			from = to
		}
	}
	x, y := 10, d.painter.Height()-12
	for _, state := range []string{"0", "1", "2"} {
		d.painter.FilledRect(x, y-8, x+10, y+2, colors[mappings[state].Color], colors[mappings[state].Color], 0)
		d.painter.Text(mappings[state].Text, x+15, y+1, 0, d.font(7))
		x += 80
	}
}

// format writes a value in the unit of the panel.
func (d *drawing) format(value float64) string {
	short := charts.FormatValueHumanizeShort(value, 1, false)
	switch d.panel.FieldConfig.Defaults.Unit {
	case "percentunit":
		return charts.FormatValueHumanizeShort(value*100, 1, false) + " %"
	case "reqps", "ops":
		return short + "/s"
	case "s":
		return strconv.FormatFloat(value, 'g', 3, 64) + " s"
	}
	return short
}
