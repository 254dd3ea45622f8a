package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
)

// shown runs a load and returns what signals show at the start of each second to rules
// that read them.
func shown(t *testing.T, load Load, seconds int, names ...rule.Signal) map[rule.Signal][]float64 {
	t.Helper()
	result, err := Run(t.Context(), gatedRules(names...), load, Options{
		Duration: time.Duration(seconds) * time.Second, Kinds: []rule.Definition{gatedKind()},
	})
	require.NoError(t, err)
	values := make(map[rule.Signal][]float64)
	for i, row := range result.Signals {
		require.InDelta(t, i/len(names), row.T, 0)
		require.NotNil(t, row.Value)
		values[rule.Signal(row.Signal)] = append(values[rule.Signal(row.Signal)], *row.Value)
	}
	return values
}

func TestSignalsHoldUntilTheNext(t *testing.T) {
	t.Parallel()
	delay := 20 * time.Millisecond
	load := Load{
		Streams: []Stream{{Resource: "r", Rate: 1}},
		Signals: []Signal{
			{At: time.Second, Memory: pointerTo(0.5), GC: pointerTo(0.1)},
			{At: 2 * time.Second, CPU: pointerTo(0.9), Load: pointerTo(7), SchedulerDelay: &delay},
			{At: 2200 * time.Millisecond, CPU: pointerTo(0), Throttled: pointerTo(1)},
		},
	}
	assert.Equal(t, map[rule.Signal][]float64{
		rule.SignalCPU:            {0, 0, 0.9, 0},
		rule.SignalLoad:           {0, 0, 7, 7},
		rule.SignalMemory:         {0, 0.5, 0.5, 0.5},
		rule.SignalSchedulerDelay: {0, 0, 0.02, 0.02},
		rule.SignalGC:             {0, 0.1, 0.1, 0.1},
		rule.SignalThrottled:      {0, 0, 0, 1},
	}, shown(t, load, 4, rule.SignalCPU, rule.SignalLoad, rule.SignalMemory, rule.SignalSchedulerDelay, rule.SignalGC, rule.SignalThrottled))
}

func TestCPUIsTheUtilisationOfTheServersUnlessGiven(t *testing.T) {
	t.Parallel()
	load := Load{
		Streams: []Stream{
			{Resource: "q", Rate: 10, Until: 2 * time.Second},                // 100 ms each on 2 workers
			{Resource: "s", Times: []time.Duration{1850 * time.Millisecond}}, // 1 s on one worker
			{Resource: "free", Times: []time.Duration{0}, ServiceTime: 1e9},  // nobody's work
		},
		Servers: []Server{
			{Resources: []string{"q"}, Workers: 2, Service: Service{Mean: 100 * time.Millisecond}},
			{Resources: []string{"s"}, Workers: 1, Service: Service{Mean: time.Second}},
		},
		Signals: []Signal{{At: 4 * time.Second, CPU: pointerTo(0.3)}},
	}
	// Of the quarter of a second before: one of three workers, one and 0.15 s of another,
	// none from 2.85 s on.
	got := shown(t, load, 5, rule.SignalCPU)[rule.SignalCPU]
	assert.InDeltaSlice(t, []float64{0, 1.0 / 3, (1 + 0.15/0.25) / 3, 0.1 / 0.25 / 3, 0.3}, got, 1e-12)
}

func TestCPUUnderAQuotaIsWhatIsUsedOfIt(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	load := Load{
		Streams: []Stream{{Resource: "q", Rate: 20, Until: time.Second}, {Resource: "q", Rate: 100, From: time.Second, Until: 3 * time.Second}},
		Servers: []Server{{
			Resources: []string{"q"}, Workers: 2, Service: Service{Mean: 10 * ms},
			TimeSlice: 10 * ms, Quota: Quota{Time: 25 * ms, Period: 50 * ms},
		}},
	}
	got := shown(t, load, 3, rule.SignalCPU)[rule.SignalCPU]
	assert.InDeltaSlice(t, []float64{0, 5 * 0.01 / 0.125, 1}, got, 1e-12)
}

// With processors, what other servers do is not the processors' work.
func TestCPUIsTheUtilisationOfTheProcessors(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	load := Load{
		Streams: []Stream{{Resource: "q", Rate: 20}},
		Servers: []Server{
			{Resources: []string{"q"}, Workers: 2, Service: Service{Mean: 10 * ms}, TimeSlice: 10 * ms},
			{Resources: []string{"q"}, Workers: 1, Service: Service{Mean: 40 * ms}},
			{Resources: []string{"q"}, Unlimited: true, Service: Service{Mean: time.Second}},
		},
	}
	assert.InDeltaSlice(t, []float64{0, 0.1, 0.1}, shown(t, load, 3, rule.SignalCPU)[rule.SignalCPU], 1e-12)
	load.Servers = load.Servers[1:]
	got := shown(t, load, 3, rule.SignalCPU)[rule.SignalCPU]
	assert.InDeltaSlice(t, []float64{0, 0.8, 0.8}, got, 1e-12, "without processors all that have workers count")
}

func TestSchedulerDelayIsHowLongCallsWaitForAProcessor(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	load := Load{
		Streams: []Stream{
			{Resource: "q", Times: []time.Duration{800 * ms, 805 * ms, 1800 * ms}},
			{Resource: "pool", Rate: 100},
		},
		Servers: []Server{
			{Resources: []string{"q"}, Workers: 1, Service: Service{Mean: 30 * ms}, TimeSlice: 20 * ms},
			{Resources: []string{"pool"}, Workers: 1, Service: Service{Mean: 20 * ms}},
		},
	}
	// At 820 the second begins, after 15 ms, at 840 the first goes on, after 20 ms, at 850
	// the second does, after 10 ms.
	got := shown(t, load, 4, rule.SignalSchedulerDelay)[rule.SignalSchedulerDelay]
	assert.InDeltaSlice(t, []float64{0, 0.020, 0, 0}, got, 1e-12)
	delay := 5 * ms
	load.Signals = []Signal{{At: time.Second, SchedulerDelay: &delay}}
	got = shown(t, load, 3, rule.SignalSchedulerDelay)[rule.SignalSchedulerDelay]
	assert.InDeltaSlice(t, []float64{0, 0.005, 0.005}, got, 1e-12)
}

func TestThrottledIsTheTimeInWhichWorkStandsStill(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	load := Load{
		Streams: []Stream{{Resource: "q", Times: []time.Duration{800 * ms, 1810 * ms, 1815 * ms, 2600 * ms}}},
		Servers: []Server{{
			Resources: []string{"q"}, Workers: 2, Service: Service{Mean: 50 * ms}, TimeSlice: 10 * ms,
			Quota: Quota{Time: 20 * ms, Period: 100 * ms},
		}},
	}
	// The first call stands still from 820 to 900 and from 920 to 1000. Each of the next
	// two has a slice in each period and wants another from 1820 or 1825 and from 1910 on.
	// The last stands still from 2720 to 2800, of which 50 ms are after 2750.
	got := shown(t, load, 4, rule.SignalThrottled)[rule.SignalThrottled]
	assert.InDeltaSlice(t, []float64{0, (0.08 + 0.08) / 0.25, (0.08 + 0.09) / 0.25, 0.05 / 0.25}, got, 1e-12)
	throttled := 0.5
	load.Signals = []Signal{{At: time.Second, Throttled: &throttled}}
	got = shown(t, load, 3, rule.SignalThrottled)[rule.SignalThrottled]
	assert.InDeltaSlice(t, []float64{0, 0.5, 0.5}, got, 1e-12)
}

func TestWhatNobodyReadsIsNotKept(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	s := newServers(Load{Servers: []Server{{
		Workers: 1, Service: Service{Mean: 50 * ms}, TimeSlice: 10 * ms, Quota: Quota{Time: 5 * ms, Period: 100 * ms},
	}}}, 0)[0]
	u := newUsage([]*server{s})
	work := func() (kept int) {
		for period := range 100 {
			s.accept(time.Duration(period)*100*ms, &call{})
			s.quota.take(time.Duration(period)*100*ms, 10*ms)
			kept = max(kept, len(s.waits), len(s.quota.stops))
		}
		return kept
	}
	assert.Zero(t, work())
	u.schedulerDelay()
	u.throttled(0)
	assert.Positive(t, work())
	u.schedulerDelay()
	u.throttled(time.Hour)
	assert.Empty(t, s.waits)
	assert.Empty(t, s.quota.stops)
}

func TestSignalThatALoadCannotHaveIsNotKnown(t *testing.T) {
	t.Parallel()
	result, err := Run(t.Context(), gatedRules("temperature"), Load{Streams: []Stream{{Resource: "r", Rate: 3}}}, Options{
		Duration: time.Second, Kinds: []rule.Definition{gatedKind()},
	})
	require.NoError(t, err)
	assert.Equal(t, []SignalValue{{T: 0, Signal: "temperature"}}, result.Signals)
	assert.Equal(t, 3, result.Seconds[0].Passed)
	assert.Nil(t, result.Limits[0].Limit)
}

func TestRulesReadSignalsEveryQuarterOfASecondWhileCallsAreUnderWay(t *testing.T) {
	t.Parallel()
	load := Load{
		Streams: []Stream{{Resource: "r", Rate: 100, ServiceTime: time.Millisecond}},
		Signals: []Signal{{At: 0, CPU: pointerTo(1)}, {At: 300 * time.Millisecond, CPU: pointerTo(0)}, {At: 710 * time.Millisecond, CPU: pointerTo(1)}},
	}
	passed := []float64{}
	_, err := Run(t.Context(), gatedRules(rule.SignalCPU), load, Options{
		Duration: time.Second, Kinds: []rule.Definition{gatedKind()}, OnEvent: func(e Event) {
			if e.Outcome == Pass {
				passed = append(passed, e.T)
			}
		},
	})
	require.NoError(t, err)
	require.Len(t, passed, 50+25)
	assert.InDelta(t, 0.49, passed[49], 1e-9)
	assert.InDelta(t, 0.75, passed[50], 1e-9, "signals change before calls of the same instant arrive")
}
