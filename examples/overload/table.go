package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
)

const (
	halfHead   = "   goodput   refused gave up   p50   p99"
	halfFormat = " %4d %-8s %5d %7d %5s %5s"
	barOf      = 50 // requests a second for each piece of a bar
)

// printHead prints the head of the table.
func printHead(out io.Writer, both bool) {
	if !both {
		fmt.Fprintf(out, "     │ %s\nsec. │%s\n", "without protection, requests a second", halfHead)
		return
	}
	width := len(halfHead)
	fmt.Fprintf(out, "     │ %-*s │ %-*s │ the rule\n", width-2, "without protection", width-2, "with protection")
	fmt.Fprintf(out, "sec. │%s │%s │ limit in flight  shed: high normal  low\n", halfHead, halfHead)
}

// printSecond prints what became of the requests that ended in a second, beside an earlier
// show if there is one.
func printSecond(out io.Writer, i int, s second, beside []second) {
	if beside == nil {
		fmt.Fprintf(out, "%4d │%s\n", i, half(s))
		return
	}
	fmt.Fprintf(out, "%4d │%s │%s │", i, half(beside[i]), half(s))
	if s.state != nil {
		fmt.Fprintf(out, " %5.0f %9.0f", s.state.limit, s.state.inFlight)
		for n, of := range shares() {
			fmt.Fprintf(out, "%*.0f", []int{12, 7, 5}[n], s.state.shed[of.priority.String()])
		}
	}
	fmt.Fprintln(out)
}

// half returns the figures of a second.
func half(s second) string {
	good := len(s.answered)
	bar := strings.Repeat("▇", min((good+barOf/2)/barOf, 8))
	return fmt.Sprintf(halfFormat, good, bar, s.refused, s.gaveUp,
		milliseconds(percentile(s.answered, 50)), milliseconds(percentile(s.answered, 99)))
}

// percentile returns the least duration that so many in a hundred do not exceed; 0 if there
// are none.
func percentile(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)*percent+99)/100-1]
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond))
}

// total is what became of the requests of several seconds.
type total struct {
	answered []time.Duration
	goodput  float64 // a second
	served   map[rule.Priority]float64
}

func totalOf(seconds []second) total {
	t := total{served: make(map[rule.Priority]float64)}
	arrived := make(map[rule.Priority]int)
	for _, s := range seconds {
		t.answered = append(t.answered, s.answered...)
		for _, of := range shares() {
			t.served[of.priority] += float64(s.served[of.priority])
			arrived[of.priority] += s.arrived[of.priority]
		}
	}
	t.goodput = float64(len(t.answered)) / float64(len(seconds))
	for p, count := range arrived {
		t.served[p] /= float64(cmp.Or(count, 1))
	}
	return t
}

// summarize compares the seconds of the overload. It returns an error if the rule did not
// help.
func summarize(out io.Writer, without, with []second, p plan) error {
	a, b := totalOf(without[p.judged:p.seconds]), totalOf(with[p.judged:p.seconds])
	row := func(about string, show func(total) string) {
		fmt.Fprintf(out, "%-44s %12s %12s\n", about, show(a), show(b))
	}
	fmt.Fprintf(out, "\n%-44s %12s %12s\n", fmt.Sprintf("Seconds %d to %d, in the overload", p.judged, p.seconds-1), "without", "with")
	row("answered in time, a second", func(t total) string { return fmt.Sprintf("%.0f", t.goodput) })
	row("… of what the service can answer", func(t total) string { return percent(t.goodput / capacity) })
	row("99 of 100 of these within", func(t total) string { return milliseconds(percentile(t.answered, 99)) })
	for _, of := range shares() {
		about := fmt.Sprintf("requests of %s priority answered in time", of.priority)
		row(about, func(t total) string { return percent(t.served[of.priority]) })
	}
	switch first, last := shares()[0].priority, shares()[2].priority; {
	case b.goodput < 1.5*a.goodput || b.goodput == 0:
		return errors.New("the rule did not help: not many more requests were answered in time than without it")
	case b.served[first] <= b.served[last]:
		return errors.New("the rule did not shed the least important requests first")
	}
	return nil
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
