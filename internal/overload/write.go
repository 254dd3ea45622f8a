package overload

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// writeReports writes a table of all goals. It returns an error if one was missed.
func writeReports(out io.Writer, protections []protection, reports [][]report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "scenario\tgoal\twant")
	for _, p := range protections {
		fmt.Fprintf(w, "\t%s", p.name)
	}
	fmt.Fprintln(w)
	missed := make([]int, len(protections))
	goals, calls, took := 0, 0, time.Duration(0)
	for _, row := range reports {
		for i, g := range row[0].scenario.goals {
			fmt.Fprintf(w, "%s\t%s\t%s", row[0].scenario.name, g.name, g.want())
			for j := range row {
				mark := ""
				if !g.reached(row[j].mean(i)) {
					missed[j]++
					mark = " ✗"
				}
				fmt.Fprintf(w, "\t%s%s%s", g.number(row[j].mean(i)), g.each(row[j].values[i]), mark)
			}
			fmt.Fprintln(w)
			goals++
		}
		for _, r := range row {
			calls += r.calls
			took += r.took
		}
	}
	fmt.Fprintf(w, "goals reached\t\t%d", goals)
	all := 0
	for _, n := range missed {
		fmt.Fprintf(w, "\t%d", goals-n)
		all += n
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d calls, %.0f a second on one processor\n", calls, float64(calls)/took.Seconds())
	if all > 0 {
		return errMissed
	}
	return nil
}

// want writes the bound of a goal.
func (g goal) want() string {
	if math.IsNaN(g.most) {
		return "≥ " + g.number(g.least)
	}
	return "≤ " + g.number(g.most)
}

// each writes the values of several seeds.
func (g goal) each(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = g.number(v)
	}
	return " (" + strings.Join(texts, " ") + ")"
}

// number writes a value in the unit of what is measured.
func (g goal) number(v float64) string {
	switch g.unit {
	case percent:
		return strconv.FormatFloat(100*v, 'f', 2, 64) + "%"
	case milliseconds:
		if v >= 1 {
			return number(v) + "s"
		}
		return number(1000*v) + "ms"
	default:
		return number(v)
	}
}

// number writes a number with three digits.
func number(v float64) string {
	if math.Abs(v) < 1e-5 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
