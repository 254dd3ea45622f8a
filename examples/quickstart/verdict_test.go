package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// asTheRulesSay returns a record of a show in which everything went by the
// rules.
func asTheRulesSay() *record {
	r := &record{
		seconds: map[string][]stat.Second{}, limits: map[string][]float64{}, scraped: 1,
		totals: map[string]stat.Totals{reserve: {Waited: 10, WaitTime: time.Second}},
	}
	r.broke, r.healed = second(breakAt), second(healAt)
	r.states = []core.StateChange{
		{At: second(5), From: breaker.Closed, To: breaker.Open},
		{At: second(6), From: breaker.Open, To: breaker.HalfOpen},
		{At: second(6) + 1, From: breaker.HalfOpen, To: breaker.Open},
		{At: second(8), From: breaker.Open, To: breaker.HalfOpen},
		{At: second(8) + 1, From: breaker.HalfOpen, To: breaker.Open},
		{At: second(10), From: breaker.Open, To: breaker.HalfOpen},
		{At: second(10) + 1, From: breaker.HalfOpen, To: breaker.Closed},
	}
	for i, limit := range warmUp(browseLimit, browsePeriod, coldFactor, duration) {
		created := uint64(createLimit)
		if i >= pushAt {
			created = createLimitLate
		}
		r.seconds[browse] = append(r.seconds[browse], stat.Second{Passed: uint64(limit)})
		r.seconds[create] = append(r.seconds[create], stat.Second{Passed: created})
		r.seconds[reserve] = append(r.seconds[reserve], stat.Second{Passed: 40})
		r.gaps = append(r.gaps, 20*time.Millisecond)
		paid := stat.Second{Start: second(i), Passed: 50}
		if i >= 5 && i < 10 {
			paid.Passed, paid.Blocked = uint64(i%2), 50-uint64(i%2)
		}
		r.seconds[pay] = append(r.seconds[pay], paid)
	}
	return r
}

// second returns the beginning of a second of the show.
func second(i int) clock.Instant { return clock.Instant(time.Duration(1_000_000+i) * time.Second) }

func TestTheVerdict(t *testing.T) {
	tests := map[string]struct {
		spoil func(r *record)
		wrong int
	}{
		"all as the rules say":           {func(*record) {}, 0},
		"no warm-up":                     {func(r *record) { r.seconds[browse][0].Passed = browseLimit }, 1},
		"a warm resource below its rate": {func(r *record) { r.seconds[browse][duration-1].Passed = 100 }, 1},
		"one call too many":              {func(r *record) { r.seconds[create][3].Passed = createLimit + 1 }, 1},
		"too few calls":                  {func(r *record) { r.seconds[create][3].Passed = createLimit / 2 }, 1},
		"a rule that has no effect":      {func(r *record) { r.seconds[create][pushAt+3].Passed = createLimit }, 1},
		"a queue that lets all through":  {func(r *record) { r.seconds[reserve][3].Passed = 80 }, 1},
		"bursts": {func(r *record) {
			for i := range r.gaps {
				r.gaps[i] = time.Millisecond
			}
		}, 1},
		"nobody waited":                  {func(r *record) { r.totals[reserve] = stat.Totals{} }, 1},
		"a breaker that never opens":     {func(r *record) { r.states = nil }, 1},
		"a breaker that never closes":    {func(r *record) { r.states = r.states[:6] }, 1},
		"a breaker that opens by itself": {func(r *record) { r.broke = second(6) }, 1},
		"a breaker that opens late":      {func(r *record) { r.broke = second(0) }, 1},
		"a breaker that closes late":     {func(r *record) { r.healed = second(6) }, 1},
		"a breaker that opens again": {func(r *record) {
			r.states = append(r.states, core.StateChange{At: second(15), From: breaker.Closed, To: breaker.Open})
		}, 1},
		"an open breaker that lets calls pass":     {func(r *record) { r.seconds[pay][7].Passed = 10 }, 1},
		"a breaker that lets none pass in the end": {func(r *record) { r.seconds[pay][duration-1].Passed = 0 }, 1},
		"no metrics": {func(r *record) { r.scraped = 0 }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := asTheRulesSay()
			test.spoil(r)
			assert.Equal(t, test.wrong, r.judge(io.Discard))
		})
	}
}

// What passes in whole calls at 1000 per second, 10 s, cold factor 3; the
// formula keeps their fractions.
func TestWarmUp(t *testing.T) {
	want := []float64{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000}
	for second, passed := range warmUp(1000, 10*time.Second, 3, len(want)) {
		assert.InDelta(t, want[second], passed, 3, "second %d", second)
	}
}
