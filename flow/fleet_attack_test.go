package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestExploreSmall(t *testing.T) {
	for _, algo := range []flow.Rule{reject(1), fixedWindow(1), bucket(1, 1), throttle(1, 0)} {
		for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk} {
			for _, lw := range []struct {
				limit  float64
				window time.Duration
			}{{0.5, time.Second}, {2.5, time.Second}, {1, time.Second}, {1, time.Millisecond}, {3, 10 * time.Second}, {100, 24 * time.Hour}, {1e9, time.Second}} {
				r := ofFleet(algo, mode)
				r.Limit, r.Window = lw.limit, lw.window
				if e := r.Validate(); len(e) > 0 {
					if e[0].Field != "fleet.mode" { fmt.Println(algo.Algorithm, mode, lw, e) }
					continue
				}
				s := newFleetScene(t, r, 2)
				began := time.Now()
				s.run(20*time.Second, func(in *instance, i int) {
					in.call(1, rule.PriorityNormal)
				})
				fmt.Println(algo.Algorithm, mode, lw, "passed in 20 s", s.total(0, 20*time.Second), "requests", s.instances[0].member.Status(s.clock.Now()).Requests, time.Since(began).Round(time.Millisecond))
			}
		}
	}
}
var _ = flow.Kind
