package leap_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

// diary is what happened to a node, second by second.
type diary struct {
	seconds map[int64]*stat.Second
	totals  stat.Totals
	started []clock.Instant // of the calls under way
	times   []time.Duration
	rules   []*leap.Refusals
	blocked []uint64           // by each of the rules
	by      []map[int64]uint64 // the same by the second
}

func (d *diary) second(at clock.Instant) *stat.Second {
	number := at.Time().Unix()
	if d.seconds[number] == nil {
		d.seconds[number] = &stat.Second{}
	}
	return d.seconds[number]
}

// at returns a second as the node should report it.
func (d *diary) at(number int64) stat.Second {
	s := stat.Second{}
	if d.seconds[number] != nil {
		s = *d.seconds[number]
	}
	s.Start = clock.Instant(number * int64(time.Second))
	return s
}

// through returns what the node should report of all seconds up to one.
func (d *diary) through(number int64) stat.Second {
	sums := d.at(number)
	for earlier, s := range d.seconds {
		if earlier < number {
			sums.Passed += s.Passed
			sums.Blocked += s.Blocked
			sums.Completed += s.Completed
			sums.Failed += s.Failed
			sums.Waited += s.Waited
			sums.ResponseTime += s.ResponseTime
		}
	}
	return sums
}

// minuteOf returns how many calls a rule has blocked in each second of the minute.
func (d *diary) minuteOf(rule int, now clock.Instant) (minute []uint64) {
	for second := now.Time().Unix() - 59; second <= now.Time().Unix(); second++ {
		minute = append(minute, d.by[rule][second])
	}
	return minute
}

func TestNodeBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n leap.Node
		now := epoch
		d := &diary{seconds: map[int64]*stat.Second{}}
		micros := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, 3_000_000).Draw(t, "µs")) * time.Microsecond
		})
		tokens := rapid.SampledFrom([]int32{1, 2, 1000, math.MaxInt32}) // of the last, two fill a word
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				asked := tokens.Draw(t, "tokens")
				n.Pass(now, asked)
				d.totals.PassedTokens += uint64(asked)
				d.started = append(d.started, now)
				d.totals.Passed++
				d.totals.InFlight++
				s := d.second(now)
				s.Passed++
				s.MaxInFlight = max(s.MaxInFlight, uint64(d.totals.InFlight))
			},
			"block": func(t *rapid.T) {
				asked := tokens.Draw(t, "tokens")
				at := now.Add(-time.Duration(rapid.SampledFrom([]int{0, 0, 700, 3000}).Draw(t, "late, ms")) * time.Millisecond)
				if rule := rapid.IntRange(-1, len(d.rules)-1).Draw(t, "rule"); rule < 0 {
					n.Block(at, asked)
				} else {
					d.rules[rule].Block(at, asked)
					d.blocked[rule]++
					d.by[rule][at.Time().Unix()]++
				}
				d.totals.BlockedTokens += uint64(asked)
				d.totals.Blocked++
				d.second(at).Blocked++
			},
			"another rule": func(t *rapid.T) {
				if len(d.rules) == 7 {
					t.Skip("there are enough, also without a tally of their own")
				}
				own := n.Refusals()
				d.rules, d.blocked, d.by = append(d.rules, &own), append(d.blocked, 0), append(d.by, map[int64]uint64{})
			},
			"done": func(t *rapid.T) {
				if len(d.started) == 0 {
					t.Skip("no call is under way")
				}
				start, failed := d.started[0], rapid.Bool().Draw(t, "failed")
				d.started = d.started[1:]
				n.Done(start, now, failed)
				took := now.Sub(start)
				d.times = append(d.times, took)
				s := d.second(now)
				s.Completed++
				s.ResponseTime += took
				s.MaxResponseTime = max(s.MaxResponseTime, took)
				d.totals.InFlight--
				d.totals.Completed++
				d.totals.ResponseTime += took
				if failed {
					s.Failed++
					d.totals.Failed++
				}
			},
			"wait": func(t *rapid.T) {
				waited := micros.Draw(t, "waited")
				n.BeginWait()
				n.EndWait(now.Add(-waited), now)
				d.totals.Waited++
				d.totals.WaitTime += waited
				d.second(now).Waited++
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(micros.Draw(t, "µs"))
			},
			"much time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(50, 80).Draw(t, "s")) * time.Second)
			},
			"": func(t *rapid.T) { assertNode(t, &n, d, now) },
		})
	})
}

func assertNode(t *rapid.T, n *leap.Node, d *diary, now clock.Instant) {
	totals := n.Totals()
	assert.Equal(t, record(d.times), totals.ResponseTimes)
	totals.ResponseTimes = stat.Distribution{}
	assert.Equal(t, d.totals, totals)

	for i, rule := range d.rules {
		assert.Equal(t, d.blocked[i], rule.Total(), "rule %d", i)
		if i < 4 {
			assert.Equal(t, d.minuteOf(i, now), rule.Minute(now), "rule %d", i)
		} else {
			assert.Nil(t, rule.Minute(now))
		}
	}
	busy := d.totals.InFlight > 0
	var minute, single []stat.Second
	for second := now.Time().Unix() - 59; second <= now.Time().Unix(); second++ {
		minute = append(minute, d.at(second))
		single = append(single, n.Second(second))
		busy = busy || d.seconds[second] != nil
		assert.Equal(t, d.through(second), n.Through(second))
	}
	assert.Equal(t, minute, n.Minute(now))
	passed, blocked := n.CallsOfMinute(now)
	for _, s := range minute {
		passed -= s.Passed
		blocked -= s.Blocked
	}
	assert.Zero(t, passed)
	assert.Zero(t, blocked)
	assert.Equal(t, minute, single)
	assert.Equal(t, !busy, n.Idle(now))
}
