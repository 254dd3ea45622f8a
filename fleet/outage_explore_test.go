package fleet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/penstock-go/penstock/fleet"
)

func TestExploreOutage(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		for _, o := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed} {
			for _, kind := range []string{"killed", "paused", "flushed", "cut"} {
				w := newWorld(1, 2*time.Millisecond)
				w.join(bucketOf(1000), mode, o, even(8, 2000)...)
				w.run(4 * time.Second)
				down := 2 * time.Second
				switch kind {
				case "killed":
					w.isDown = true
					w.run(down)
					w.store.Flush()
					w.isDown = false
				case "paused":
					down = 5 * time.Second
					w.isPaused = true
					w.run(down)
					w.resume()
				case "flushed":
					down = 0
					w.store.Flush()
				case "cut":
					w.instances[0].isCut = true
					w.run(down)
					w.instances[0].isCut = false
				}
				back := 4*time.Second + down
				w.run(4 * time.Second)
				during, _ := w.total(4*time.Second, back)
				fmt.Printf("%-7s %-7s %-7s during %.3f worst %.3f too many until 2s after %+5d halves after:", mode, o, kind, float64(during)/max(1, down.Seconds())/1000,
					float64(w.worst(3*time.Second, back+3*time.Second, time.Second, time.Millisecond))/1000, 0)
				p, _ := w.total(4*time.Second, back+2*time.Second)
				fmt.Printf(" excess %+d |", p-int((down+2*time.Second)/time.Millisecond))
				for k := range 6 {
					p, _ := w.total(back+time.Duration(k)*500*time.Millisecond, back+time.Duration(k+1)*500*time.Millisecond)
					fmt.Printf(" %.2f", float64(p)/500)
				}
				s := w.instances[1].member.Status(w.clock.Now())
				fmt.Printf(" outages %d lines %d\n", s.Outages, countLines(w.log.String()))
			}
		}
	}
}

func countLines(s string) (n int) {
	for _, c := range s {
		if c == '\n' {
			n++
		}
	}
	return n
}
