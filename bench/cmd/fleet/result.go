package main

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/bench/internal/report"
)

// settled is when the first calls of a run are over: since then it counts whether calls below
// the limit are refused.
const settled = time.Second

// total returns what passed in the whole run, as a multiple of the limit.
func (r *result) total() float64 {
	return float64(r.between(0, r.Duration)) / (r.Limit * r.Duration.Seconds())
}

// worstSecond returns the most that passed in any second from an instant on, as a multiple of
// the limit.
func (r *result) worstSecond(from time.Duration) float64 { return float64(r.worst(from)) / r.Limit }

// worstAround returns the most that passed in any second that begins at most a second before
// the fault, or later, as a multiple of the limit.
func (r *result) worstAround() float64 { return r.worstSecond(r.faultBegan - time.Second) }

func (r *result) alignedSecond() float64 { return float64(r.aligned(r.clock)) / r.Limit }

// callsPerInstance returns how often an instance runs a script, per second.
func (r *result) callsPerInstance() float64 {
	return r.scripts / float64(r.Instances) / r.Duration.Seconds()
}

// decisions returns how many calls were decided for each script that ran.
func (r *result) decisions() float64 { return float64(len(r.calls)) / max(1, r.scripts) }

// during returns what passed while the fault lasted, as a multiple of the limit.
func (r *result) during() float64 {
	took := r.faultEnded - r.faultBegan
	return float64(r.between(r.faultBegan, r.faultEnded)) / (r.Limit * took.Seconds())
}

func (r *result) duringCell() string {
	if r.Fault.lasts == 0 {
		return "–" // it was over at once
	}
	return share(r.during())
}

// tooMany returns how many calls passed from the beginning of the fault until 2 s after it
// beyond the limit, in seconds of the limit. Below 0, less passed.
func (r *result) tooMany() float64 {
	until := r.faultEnded + 2*time.Second
	return float64(r.between(r.faultBegan, until))/r.Limit - (until - r.faultBegan).Seconds()
}

// back returns what passed in the second that begins half a second after the fault, as a
// multiple of the limit.
func (r *result) back() float64 {
	from := r.faultEnded + 500*time.Millisecond
	return float64(r.between(from, from+time.Second)) / r.Limit
}

// inFault are the latencies of calls while the fault lasts; if it is over at once, in the
// second after it.
func (r *result) inFault() latencies {
	return r.latencies(r.faultBegan, max(r.faultEnded, r.faultBegan+time.Second))
}

func (r *result) String() string {
	text := fmt.Sprintf("%s: total %.3f, worst second %.3f, refused %.4f", r.scenario.String(), r.total(), r.worstSecond(0), r.refused(settled))
	if r.Fault == nil {
		text += fmt.Sprintf(", %.1f scripts/s an instance", r.callsPerInstance())
	} else {
		text += fmt.Sprintf(", during %s, too many %+.3f s, %.3f half a second later", r.duringCell(), r.tooMany(), r.back())
	}
	return text + fmt.Sprintf(", outages seen %d", r.outages)
}

func share(v float64) string { return fmt.Sprintf("%.3f", v) }

func percent(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }

func micros(d time.Duration) string {
	us := float64(d) / float64(time.Microsecond)
	if us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func keySize(n int64) string {
	if n == 0 {
		return "–" // there is no key
	}
	return fmt.Sprint(n)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// tables returns a table for each part of the runs, and one of the goals.
func tables(all []result) []*report.Table {
	var tables []*report.Table
	for _, table := range []*report.Table{overloadTable(all), spareTable(all), faultTable(all), goalTable(all)} {
		if len(table.Rows) > 0 {
			tables = append(tables, table)
		}
	}
	return tables
}

func overloadTable(all []result) *report.Table {
	table := &report.Table{
		Title: "### Twice the limit",
		Head: []string{
			"mode", "limit/s", "demand", "passed", "worst second", "… after the first", "worst aligned", "refused",
			"scripts/s", "decisions a script", "script, µs", "key, B", "call p50, µs", "p99, µs", "outages",
		},
	}
	for i := range all {
		r := &all[i]
		if !r.isOverload() {
			continue
		}
		took := r.latencies(0, r.Duration)
		table.Add(string(r.Mode), fmt.Sprintf("%.0f", r.Limit), r.demand(),
			share(r.total()), share(r.worstSecond(0)), share(r.worstSecond(settled)), share(r.alignedSecond()), percent(r.refused(settled)),
			fmt.Sprintf("%.1f", r.callsPerInstance()), fmt.Sprintf("%.1f", r.decisions()), micros(r.perScript), keySize(r.bytes),
			micros(took.median), micros(took.p99), fmt.Sprint(r.outages))
	}
	return table
}

func spareTable(all []result) *report.Table {
	table := &report.Table{
		Title: "### 80 % of the limit",
		Head:  []string{"mode", "limit/s", "answers later", "refused", "by one counter", "scripts/s", "decisions a script", "call p50, µs", "p99, µs", "outages"},
	}
	for i := range all {
		r := &all[i]
		if !r.isSpare() {
			continue
		}
		took := r.latencies(settled, r.Duration)
		table.Add(string(r.Mode), fmt.Sprintf("%.0f", r.Limit), r.Delay.String(), percent(r.refused(settled)), percent(r.refusedByOne()),
			fmt.Sprintf("%.1f", r.callsPerInstance()), fmt.Sprintf("%.1f", r.decisions()),
			micros(took.median), micros(took.p99), fmt.Sprint(r.outages))
	}
	return table
}

func faultTable(all []result) *report.Table {
	table := &report.Table{
		Title: "### Faults, at 1000/s and twice that",
		Head: []string{
			"server", "mode", "onOutage", "demand", "lasts, s", "passed during", "worst second", "too many, s", "half a second after",
			"call p99 before, µs", "during, µs", "longest, ms",
		},
	}
	for i := range all {
		r := &all[i]
		if r.Fault == nil {
			continue
		}
		in := r.inFault()
		table.Add(r.Fault.about, string(r.Mode), string(r.OnOutage), r.demand(), fmt.Sprintf("%.1f", (r.faultEnded-r.faultBegan).Seconds()),
			r.duringCell(), share(r.worstAround()), fmt.Sprintf("%+.3f", r.tooMany()), share(r.back()),
			micros(r.latencies(settled, r.faultBegan).p99), micros(in.p99), millis(in.longest))
	}
	return table
}
