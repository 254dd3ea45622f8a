package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
)

// passes returns counts of calls that passed at instants in milliseconds.
func passes(at ...int) counts {
	var c counts
	for _, ms := range at {
		c.add(summary{}, []call{{at: time.Duration(ms) * time.Millisecond, passed: true}})
	}
	c.sort()
	return c
}

func TestWorstSecondIsFoundWhereverItBegins(t *testing.T) {
	tests := map[string]struct {
		at   []int
		from time.Duration
		want int
	}{
		"none":                    {},
		"all in one second":       {at: []int{999, 0, 500}, want: 3},
		"a second ends before":    {at: []int{0, 1000}, want: 1},
		"across a whole second":   {at: []int{0, 900, 950, 1000, 1850, 1900}, want: 4},
		"only since an instant":   {at: []int{0, 1, 2, 1500, 1600}, from: time.Second, want: 2},
		"the instant counts too":  {at: []int{1000, 1001}, from: time.Second, want: 2},
		"nothing since it":        {at: []int{0, 1, 2}, from: time.Second},
		"from before the instant": {at: []int{0, 1}, from: -time.Second, want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := passes(tt.at...)
			assert.Equal(t, tt.want, c.worst(tt.from))
		})
	}
}

func TestAlignedSecondBeginsWithATenthOfTheClock(t *testing.T) {
	midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Two calls at either end of a second that begins at .95 on a clock that shows midnight.
	c := passes(950, 960, 1930, 1940)
	assert.Equal(t, 4, c.worst(0))
	assert.Equal(t, 2, c.aligned(midnight), "from .9 to 1.9 two, from 1.0 to 2.0 two")
	assert.Equal(t, 4, c.aligned(midnight.Add(50*time.Millisecond)), "on that clock it begins with a tenth")
	none := passes()
	assert.Zero(t, none.aligned(midnight))
}

func TestCallsAreCountedBetweenInstants(t *testing.T) {
	c := passes(0, 10, 20, 30)
	ms := time.Millisecond
	assert.Equal(t, 2, c.between(10*ms, 30*ms))
	assert.Equal(t, 0, c.between(30*ms, 10*ms))
	c.add(summary{Outages: 2, Lost: 3}, []call{{at: 40 * ms, took: 5 * ms}, {at: 50 * ms, took: 7 * ms}})
	c.sort()
	assert.InDelta(t, 2.0/6, c.refused(0), 1e-9)
	assert.InDelta(t, 1.0, c.refused(40*ms), 1e-9)
	assert.Zero(t, c.refused(time.Second))
	assert.Equal(t, latencies{median: 5 * ms, p99: 7 * ms, longest: 7 * ms}, c.latencies(40*ms, 60*ms))
	assert.Zero(t, c.latencies(time.Second, 2*time.Second))
	assert.EqualValues(t, 2, c.outages)
	assert.EqualValues(t, 3, c.lost)
}

func TestCallsAreReadAsTheyWereWritten(t *testing.T) {
	calls := []call{{at: 1, took: 2, passed: true}, {at: time.Hour, took: 4 * time.Second}, {at: 3, took: time.Hour, passed: true}}
	var text bytes.Buffer
	require.NoError(t, writeCalls(&text, summary{Calls: len(calls), Outages: 1}, calls))
	whole := text.Bytes()
	s, got, err := readCalls(bufio.NewReader(bytes.NewReader(whole)))
	require.NoError(t, err)
	assert.Equal(t, summary{Calls: 3, Outages: 1}, s)
	calls[2].took = 1<<32 - 1 // the longest that there is
	assert.Equal(t, calls, got)

	_, _, err = readCalls(bufio.NewReader(bytes.NewReader(whole[:len(whole)-1])))
	require.ErrorContains(t, err, "has no end")
	_, _, err = readCalls(bufio.NewReader(bytes.NewReader(nil)))
	require.ErrorContains(t, err, "reports nothing")
}

func TestCommandStatisticsAreReadFromInfo(t *testing.T) {
	const info = "# Commandstats\r\n" +
		"cmdstat_eval:calls=2,usec=100,usec_per_call=50.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_evalsha:calls=940,usec=7520,usec_per_call=8.25,rejected_calls=0,failed_calls=0\r\n"
	assert.Equal(t, statistics{calls: 940, usecPerCall: 8.25}, commandStatistics(info, "evalsha"))
	assert.Equal(t, statistics{calls: 2, usecPerCall: 50}, commandStatistics(info, "eval"))
	assert.Zero(t, commandStatistics(info, "zcard"))
}

func TestGoalsTellWhatWasMissed(t *testing.T) {
	run := func(skewed bool, passes int) result {
		r := result{scenario: scenario{
			Mode: fleet.ModeLease, Limit: 1000, Load: overload, Skewed: skewed, Instances: 8, Duration: 10 * time.Second,
		}}
		for i := range passes {
			r.add(summary{}, []call{{at: time.Duration(i) * 10 * time.Second / time.Duration(passes), passed: true}})
		}
		r.sort()
		r.scripts = 500
		return r
	}
	rows := make(map[string][]string)
	for _, row := range goalTable([]result{run(false, 10_000), run(true, 10_200)}).Rows {
		rows[row[0]] = row[1:]
	}
	assert.Equal(t, []string{"at most 0.01", "0.0200 (missed)", "lease 1000/s 2 × 90 %"}, rows["lease, 1000/s and more: passed, off the limit by"])
	assert.Equal(t, []string{"at most 1.08", "1.020", "lease 1000/s 2 × 90 %"}, rows["lease, 1000/s and more: worst second"])
	assert.Equal(t, []string{"at least 15", "20.0", "lease 1000/s 2 × even"}, rows["lease, 1000/s: decisions for each script"])
	assert.NotContains(t, rows, "emptied: too many, s", "nothing was measured of it")
}

func TestFaultIsMeasuredAgainstTheLimit(t *testing.T) {
	f := faults()[0]
	r := result{
		scenario:   scenario{Mode: fleet.ModeLease, OnOutage: fleet.OutageLast, Limit: 100, Fault: &f},
		faultBegan: 3 * time.Second, faultEnded: 5 * time.Second,
	}
	pass := func(n int, from time.Duration) { // within a second
		for i := range n {
			r.add(summary{}, []call{{at: from + time.Duration(i)*time.Second/time.Duration(n), passed: true}})
		}
	}
	for second, n := range []int{100, 100, 100, 80, 90, 130, 120, 100} {
		pass(n, time.Duration(second)*time.Second)
	}
	r.sort()
	assert.InDelta(t, 0.85, r.during(), 1e-9)
	assert.InDelta(t, 0.2, r.tooMany(), 1e-9, "80+90+130+120 in four seconds")
	assert.InDelta(t, 1.25, r.back(), 0.02, "from 5.5 to 6.5")
	assert.InDelta(t, 1.3, r.worstAround(), 0.02)
}

func TestAnswersComeLaterButNotOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromServer, server := net.Pipe()
		toClient, client := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			deliverLater(toClient, fromServer, func() time.Duration { return 50 * time.Millisecond })
		}()
		start := time.Now()
		for range 3 {
			_, err := server.Write([]byte("x"))
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		for i := range 3 {
			_, err := io.ReadFull(client, make([]byte, 1))
			require.NoError(t, err)
			assert.Equal(t, 50*time.Millisecond+time.Duration(i)*time.Millisecond, time.Since(start))
		}
		require.NoError(t, server.Close())
		<-done
		require.NoError(t, client.Close())
	})
}
