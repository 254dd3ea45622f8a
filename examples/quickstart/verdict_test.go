package main

import (
	"io"
	"strings"
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
	r.push, r.busy = [2]int{pushAt, pushAt}, make([]bool, duration)
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
			wrong, untold := r.judge(io.Discard)
			assert.Equal(t, test.wrong, wrong)
			assert.Zero(t, untold)
		})
	}
}

// On a busy machine the load is not what it says. What holds whatever comes still has to hold.
func TestTheVerdictOnABusyMachine(t *testing.T) {
	tests := map[string]struct {
		spoil         func(r *record)
		wrong, untold int
	}{
		"all as the rules say":                 {func(*record) {}, 0, 0},
		"one call too many":                    {func(r *record) { r.seconds[create][3].Passed = createLimit + 1 }, 1, 0},
		"too few calls":                        {func(r *record) { r.seconds[create][3].Passed = createLimit / 2 }, 0, 1},
		"no call for a second":                 {func(r *record) { r.seconds[browse][7] = stat.Second{} }, 0, 1},
		"no warm-up":                           {func(r *record) { r.seconds[browse][0].Passed = browseLimit }, 1, 0},
		"a rule in force late":                 {func(r *record) { r.push[1], r.seconds[create][pushAt+1].Passed = pushAt+1, createLimit }, 0, 0},
		"a rule in force at the end":           {func(r *record) { r.push[1] = duration + 3 }, 0, 1},
		"bursts, nobody waited":                {func(r *record) { r.gaps, r.totals[reserve] = nil, stat.Totals{} }, 0, 2},
		"a breaker that never opens":           {func(r *record) { r.states = nil }, 0, 1},
		"an open breaker lets calls pass":      {func(r *record) { r.seconds[pay][7].Passed = 10 }, 1, 0},
		"a breaker that opens and closes late": {func(r *record) { r.broke, r.healed = second(0), second(6) }, 0, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := asTheRulesSay()
			for i := range r.busy {
				r.busy[i] = true
			}
			test.spoil(r)
			wrong, untold := r.judge(io.Discard)
			assert.Equal(t, test.wrong, wrong)
			assert.Equal(t, test.untold, untold)
		})
	}
}

func TestWhatWasSeenIsPrintedWithoutTheClaimBeingMade(t *testing.T) {
	r := asTheRulesSay()
	r.seconds[create][3].Passed = createLimit + 1
	var out strings.Builder
	r.judge(&out)
	assert.Contains(t, out.String(), "✗ seen: 100 to 101; but it should be that ")
}

func TestStallsAreOfTheSecondsInWhichSomethingWasLate(t *testing.T) {
	now := clock.NewVirtual(time.Unix(1_000_000, 0))
	s := newStalls(now)
	now.Advance(5 * time.Second)
	s.note(stall - 1)
	for i := range 10 {
		assert.False(t, s.in(second(i)))
	}
	now.Advance(500 * time.Millisecond)
	s.note(1200 * time.Millisecond) // from 4.3 to 5.5
	assert.False(t, s.in(second(3)))
	assert.True(t, s.in(second(4)) && s.in(second(5)) && s.in(second(6)))
	assert.False(t, s.in(second(7)))
}

// What passes in whole calls at 1000 per second, 10 s, cold factor 3; the
// formula keeps their fractions.
func TestWarmUp(t *testing.T) {
	want := []float64{333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000}
	for second, passed := range warmUp(1000, 10*time.Second, 3, len(want)) {
		assert.InDelta(t, want[second], passed, 3, "second %d", second)
	}
}
