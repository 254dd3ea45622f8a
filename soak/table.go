package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// printProgress prints the progress every few seconds.
func (s *soak) printProgress(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	before, calls := time.Now(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			all := s.all()
			rate := float64(all.calls-calls) / now.Sub(before).Seconds()
			before, calls = now, all.calls
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			fmt.Fprintf(s.out, "%6s  %d calls, %.0f a second; %d passed, %d reloads, %d engines closed; %d goroutines, heap %s; %d findings\n",
				s.clock.Now().Sub(s.started).Round(time.Second), all.calls, rate, all.passed, s.reloads.Load(), s.engines.Load(),
				runtime.NumGoroutine(), megabytes(stats.HeapAlloc), s.findings.total())
		}
	}
}

// table prints what was counted.
func (s *soak) table(out io.Writer) {
	elapsed := s.clock.Now().Sub(s.started)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nresource\trule\ttokens passed\ta second\tchecked\tfullest\t")
	for _, e := range s.subjects() {
		for _, p := range e.promises {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.2f %%\t%.1f %%\t\n", p.name, cmp.Or(p.description, "none"), p.passed,
				float64(p.passed)/elapsed.Seconds(), 100*share(float64(p.passed-p.unchecked), float64(p.passed)), 100*p.fullest)
		}
	}
	_ = w.Flush()
	all := s.all()
	fmt.Fprintf(out, "\n%d calls = %d passed + %d refused + %d given up + %d invalid; %d failed\n",
		all.calls, all.passed, all.blocked, all.gaveUp, all.invalid, all.failed)
	fmt.Fprintf(out, "%d reloads, %d rule sets in force, %d documents written and %d rejected, %d engines opened and closed\n",
		s.reloads.Load(), s.main.swaps.Load(), s.writes.Load(), s.main.Snapshot().Rejected, s.engines.Load())
	fmt.Fprintf(out, "%d overloads of random size simulated under an adaptive rule\n", s.overloads.Load())
	for i, sample := range s.heap {
		if i == 0 || i == len(s.heap)-1 || sample.after/time.Minute != s.heap[i-1].after/time.Minute {
			fmt.Fprintf(out, "heap after %v: %s\n", sample.after.Round(time.Second), megabytes(sample.bytes))
		}
	}
	fmt.Fprintf(out, "%d findings\n", s.findings.total())
}

func megabytes(bytes uint64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
