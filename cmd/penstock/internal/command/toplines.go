package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

const (
	maxTopName   = 40 // characters of the name of a resource
	maxTopRule   = 30
	sparkSeconds = 3 // that a character of a sparkline stands for
)

// topColumn is a column of the table. Its cells are at most most characters wide.
type topColumn struct {
	title string
	left  bool // aligned to the left
	most  int
	cell  func(*inspect.Resource) string
}

func topColumns() []topColumn {
	return []topColumn{
		{"RESOURCE", true, maxTopName, func(of *inspect.Resource) string { return wording.Cell(of.Name) }},
		{"PASSED/S", false, 12, func(of *inspect.Resource) string { return strconv.FormatUint(of.Second.Passed, 10) }},
		{"REFUSED/S", false, 12, func(of *inspect.Resource) string { return strconv.FormatUint(of.Second.Refused, 10) }},
		{"P50", false, 9, func(of *inspect.Resource) string {
			return responseTime(of, func(r *inspect.ResponseTimes) float64 { return r.P50 })
		}},
		{"P99", false, 9, func(of *inspect.Resource) string {
			return responseTime(of, func(r *inspect.ResponseTimes) float64 { return r.P99 })
		}},
		{"IN FLIGHT", false, 9, func(of *inspect.Resource) string { return strconv.FormatInt(of.InFlight, 10) }},
		{"WAITING", false, 9, func(of *inspect.Resource) string { return strconv.FormatInt(of.Waiting, 10) }},
		{"LAST MINUTE", true, 20, sparkline},
		{"REFUSED BY", true, maxTopRule, refusedBy},
	}
}

func responseTime(of *inspect.Resource, which func(*inspect.ResponseTimes) float64) string {
	if of.ResponseTimes == nil {
		return "-"
	}
	d := time.Duration(which(of.ResponseTimes) * float64(time.Second))
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= 10*time.Microsecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Nanosecond).String()
}

// refusedBy returns the rule that has refused most calls of the last minute, "" if none has.
func refusedBy(of *inspect.Resource) string {
	if of.Minute.Refused == 0 {
		return ""
	}
	for _, r := range of.Rules {
		if known(r.Minute) > 0 {
			return wording.Cell(fmt.Sprintf("%s %s", r.Kind, r.Rule))
		}
	}
	return "?" // a rule that the service counts no seconds of
}

// sparkline draws the calls of the last minute, those that passed and those that were refused. The
// present second, which goes on, is left out.
func sparkline(of *inspect.Resource) string {
	const levels = "▁▂▃▄▅▆▇█"
	s := of.Seconds
	if s == nil || len(s.Passed) < 2 || len(s.Refused) < len(s.Passed) {
		return ""
	}
	var sums []uint64
	most := uint64(0)
	for end := len(s.Passed) - 1; end > 0; end -= sparkSeconds {
		sum := uint64(0)
		for i := max(0, end-sparkSeconds); i < end; i++ {
			sum += s.Passed[i] + s.Refused[i]
		}
		sums, most = append(sums, sum), max(most, sum)
	}
	var line strings.Builder
	for _, sum := range slices.Backward(sums) {
		level := 0
		if sum > 0 {
			level = 1 + int(float64(sum)/float64(most)*6.99)
		}
		line.WriteRune([]rune(levels)[level])
	}
	return line.String()
}

// topLines returns the table as lines that are cut to a width; 0 does not cut.
func topLines(a *topAnswer, by inspect.ResourceSort, width int, p painter) []string {
	at := "no answer yet"
	if !a.Time.IsZero() {
		at = a.Time.UTC().Format(time.DateTime)
	}
	head := fmt.Sprintf("penstock top  %s  %s of %s  by %s", at,
		wording.Count(len(a.Engines)-a.failed(), "service"), wording.Count(a.Total, "resource"), by)
	lines := []string{cutTo(head, width)}
	for _, line := range a.engineLines() {
		lines = append(lines, p.paint(red, cutTo(line, width)))
	}
	columns := topColumns()
	rows := make([][]string, 1+len(a.Resources))
	for i, c := range columns {
		widest := utf8.RuneCountInString(c.title)
		for j := range a.Resources {
			cell := cutTo(c.cell(&a.Resources[j]), c.most)
			widest = max(widest, utf8.RuneCountInString(cell))
			rows[1+j] = append(rows[1+j], cell)
		}
		rows[0] = append(rows[0], c.title)
		for j := range rows {
			rows[j][i] = pad(rows[j][i], widest, c.left)
		}
	}
	for j, row := range rows {
		line := cutTo(strings.TrimRight(strings.Join(row, "  "), " "), width)
		if j > 0 && a.Resources[j-1].Second.Refused > 0 {
			line = p.paint(yellow, line)
		}
		lines = append(lines, line)
	}
	return lines
}

func pad(text string, width int, left bool) string {
	spaces := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if left {
		return text + spaces
	}
	return spaces + text
}

// cutTo cuts a text to so many characters; 0 does not cut.
func cutTo(text string, most int) string {
	if most <= 0 || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
