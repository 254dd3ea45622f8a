package fleet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/penstock-go/penstock/fleet"
)

func TestExplore(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	const warm, end = 2 * time.Second, 12 * time.Second
	row := func(name string, n int, limit float64, load float64, rtt time.Duration, mode fleet.Mode, skew bool, loss float64) {
		began := time.Now()
		w := newWorld(1, rtt)
		w.loss = loss
		rates := even(n, limit*load)
		if skew {
			rates = skewed(n, limit*load)
		}
		w.join(bucketOf(limit), mode, fleet.OutageLast, rates...)
		w.run(warm)
		ex, rq := w.exchanges, w.requests
		w.run(end - warm)
		passes, calls := w.total(warm, end)
		lo, hi := 1<<60, 0
		for _, i := range w.instances {
			p := 0
			for ms := 2000; ms < 12000 && ms < len(i.passes); ms++ {
				p += int(i.passes[ms])
			}
			lo, hi = min(lo, p), max(hi, p)
		}
		fmt.Printf("%-8s n=%-4d limit=%-7.0f load=%.1f rtt=%-5v skew=%-5v loss=%.2f | total/limit %.4f refused %.4f any-s %.3f aligned %.4f start-s %.3f | req/s/m %.1f dec/req %.0f | min %d max %d outages %d | %v\n",
			mode, n, limit, load, rtt, skew, loss, float64(passes)/limit/10, 1-float64(passes)/float64(calls),
			float64(w.worst(warm, end, time.Second, time.Millisecond))/limit, float64(w.worst(warm, end, time.Second, 100*time.Millisecond))/limit,
			float64(w.worst(0, warm, time.Second, time.Millisecond))/limit,
			float64(w.exchanges-ex)/10/float64(n), float64(calls)/max(1, float64(w.requests-rq)), lo, hi, w.instances[0].member.Status(w.clock.Now()).Outages, time.Since(began).Round(time.Millisecond))
	}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		for _, load := range []float64{2, .8} {
			row("", 8, 1000, load, 2*time.Millisecond, mode, false, 0)
			row("", 8, 1000, load, 2*time.Millisecond, mode, true, 0)
			row("", 8, 100, load, 2*time.Millisecond, mode, false, 0)
			row("", 8, 100, load, 2*time.Millisecond, mode, true, 0)
			row("", 8, 10, load, 2*time.Millisecond, mode, false, 0)
			row("", 100, 1000, load, 2*time.Millisecond, mode, false, 0)
			row("", 100, 1000, load, 2*time.Millisecond, mode, true, 0)
			row("", 100, 100, load, 2*time.Millisecond, mode, false, 0)
			row("", 8, 1000, load, 20*time.Millisecond, mode, false, 0)
			row("", 8, 1000, load, 50*time.Millisecond, mode, false, 0)
			row("", 8, 1000, load, 2*time.Millisecond, mode, false, .01)
			row("", 8, 1000, load, 50*time.Millisecond, mode, false, .01)
		}
	}
	if os.Getenv("EXPLORE") == "2" {
		for _, load := range []float64{2, .8} {
			row("", 8, 100000, load, 2*time.Millisecond, fleet.ModeLease, false, 0)
			row("", 8, 100000, load, 2*time.Millisecond, fleet.ModeWindow, false, 0)
			row("", 1000, 1000, load, 2*time.Millisecond, fleet.ModeLease, false, 0)
			row("", 1000, 10000, load, 2*time.Millisecond, fleet.ModeLease, false, 0)
		}
	}
}
