package signal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal/internal/process"
)

const quarter = 250 * time.Millisecond

func TestFirstReadingIsZeroAndTwoAtOnceAreTheSame(t *testing.T) {
	m := newMachine(t, container())
	require.Zero(t, m.read(rule.SignalCPU))
	require.Zero(t, m.after(quarter, nil, rule.SignalCPU))
	require.InDelta(t, 0.4, m.after(quarter, cpu2(v2Top, "100000", 7.2, 1), rule.SignalCPU), 1e-9)
	same := m.after(49*time.Millisecond, cpu2(v2Top, "100000", 7.3, 1), rule.SignalCPU)
	require.InDelta(t, 0.4, same, 1e-9, "less than 50 ms are too few ticks")
	require.InDelta(t, 0.3/0.55, m.after(time.Millisecond, nil, rule.SignalCPU), 1e-9)
}

func TestReadingAfterAPauseIsThatOfThePause(t *testing.T) {
	m := newMachine(t, container())
	m.read(rule.SignalCPU)
	require.InDelta(t, 0.8, m.after(quarter, cpu2(v2Top, "100000", 7.2, 1), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.1, m.after(time.Hour, cpu2(v2Top, "100000", 367.2, 1), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.8, m.after(quarter, cpu2(v2Top, "100000", 367.4, 1), rule.SignalCPU), 1e-9, "the pause does not weigh in it")
}

// A quota is used up at the beginning of each period. Whether 250 ms have two periods or
// three does not show.
func TestPeriodsOfTheQuotaDoNotShow(t *testing.T) {
	m := newMachine(t, container())
	for step := range 40 { // 2.5 periods each, of which the process runs in the first half
		periods := float64(step*5/2 + step%2)
		value := m.after(quarter, cpu2(v2Top, "50000", 7+periods*0.05, 1), rule.SignalCPU)
		if step >= 4 {
			require.InDelta(t, 1, value, 0.101, "after %d periods", int(periods))
		}
	}
}

func TestChangedQuotaCountsFromItsChange(t *testing.T) {
	m := newMachine(t, container())
	m.read(rule.SignalCPU)
	require.InDelta(t, 0.5, m.after(time.Second, cpu2(v2Top, "100000", 7.5, 1), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.25, m.after(time.Second, cpu2(v2Top, "200000", 8, 1), rule.SignalCPU), 1e-9)
	m.after(quarter, join(cpu2(v2Top, "max", 9, 1), first()), rule.SignalCPU)
	require.InDelta(t, 0.5, m.after(time.Second, second(), rule.SignalCPU), 1e-9, "the quota is gone: the machine counts")
	require.Zero(t, m.read(rule.SignalThrottled))
	require.Zero(t, m.after(quarter, cpu2(v2Top, "100000", 20, 5), rule.SignalCPU), "a new quota: it takes two readings")
	require.InDelta(t, 0.4, m.after(quarter, cpu2(v2Top, "100000", 20.1, 5), rule.SignalCPU), 1e-9)
}

func TestProcessThatIsMovedCountsInItsNewCgroup(t *testing.T) {
	m := newMachine(t, membership("0::/a\n", mountOfV2), cpu2(v2Top+"/a", "100000", 5, 0), cpu2(v2Top+"/b", "200000", 50, 0),
		memory2(v2Top+"/a", oneGiB, 512, 0), memory2(v2Top+"/b", twoGiB, 512, 0))
	m.read(rule.SignalCPU)
	require.InDelta(t, 0.5, m.after(time.Second, cpu2(v2Top+"/a", "100000", 5.5, 0), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.5, m.read(rule.SignalMemory), 1e-9)
	m.after(9*time.Second, membership("0::/b\n", mountOfV2), rule.SignalCPU)
	m.after(time.Second, cpu2(v2Top+"/b", "200000", 51, 0), rule.SignalCPU)
	require.InDelta(t, 0.9, m.after(time.Second, cpu2(v2Top+"/b", "200000", 52.8, 0), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.25, m.read(rule.SignalMemory), 1e-9)
}

func TestCgroupThatGoesAwayIsLookedUpAgain(t *testing.T) {
	m := newMachine(t, membership("0::/a\n", mountOfV2), cpu2(v2Top+"/a", "100000", 5, 0))
	m.read(rule.SignalCPU)
	m.remove(v2Top + "/a/cpu.stat")
	m.write(join(membership("0::/b\n", mountOfV2), cpu2(v2Top+"/b", "200000", 50, 0)))
	m.clock.Advance(quarter)
	_, err := m.source.Read(t.Context(), rule.SignalCPU)
	require.ErrorContains(t, err, "read /sys/fs/cgroup/a/cpu.stat: file does not exist")
	m.after(quarter, nil, rule.SignalCPU)
	require.InDelta(t, 0.9, m.after(time.Second, cpu2(v2Top+"/b", "200000", 51.8, 0), rule.SignalCPU), 1e-9)
}

func TestCounterThatGoesBackBeginsAnew(t *testing.T) {
	m := newMachine(t, container())
	m.read(rule.SignalCPU)
	require.InDelta(t, 0.5, m.after(time.Second, cpu2(v2Top, "100000", 7.5, 1.5), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.5, m.after(time.Second, cpu2(v2Top, "100000", 0.1, 0), rule.SignalCPU), 1e-9, "the last that is known")
	require.InDelta(t, 0.9, m.after(time.Second, cpu2(v2Top, "100000", 1, 0.2), rule.SignalCPU), 1e-9)
	require.InDelta(t, 0.2, m.read(rule.SignalThrottled), 1e-9)
}

func TestTimesOfProcessorsThatGoBackCountAsNone(t *testing.T) {
	m := newMachine(t, files{"proc/stat": stat(processor{10, 90}, processor{10, 90})})
	m.read(rule.SignalCPU)
	// The kernel lets the time of waiting for devices go back now and then.
	value := m.after(time.Second, files{"proc/stat": stat(processor{10.4, 90.6}, processor{10.8, 80})}, rule.SignalCPU)
	require.InDelta(t, 1.2/1.8, value, 1e-9)
}

func TestProcessorsComeAndGo(t *testing.T) {
	two := []processor{{10, 90}, {20, 80}}
	m := newMachine(t, files{"proc/stat": stat(two...)})
	m.read(rule.SignalCPU)
	// A third one comes, which has counted a thousand seconds before.
	value := m.after(time.Second, files{"proc/stat": stat(processor{10.5, 90.5}, processor{20.5, 80.5}, processor{1000, 0})}, rule.SignalCPU)
	require.InDelta(t, 0.5, value, 1e-9)
	value = m.after(2*time.Second, files{"proc/stat": stat(processor{10.5, 92.5}, processor{20.5, 82.5}, processor{1002, 0})}, rule.SignalCPU)
	require.InDelta(t, 1.0/3, value, 1e-9)
	// The second goes, and its number is missing.
	value = m.after(2*time.Second, files{"proc/stat": statLine(0, processor{11.5, 93.5}) + statLine(2, processor{1004, 0})}, rule.SignalCPU)
	require.InDelta(t, 0.75, value, 1e-9)
	require.InDelta(t, 1, m.read(rule.SignalLoad), 1e-9, "a load of 2, on two processors")
}

func TestMemoryIsThatOfTheLimitMostUsed(t *testing.T) {
	tests := map[string]struct {
		container files
		memory    process.Memory
		want      float64
	}{
		"only GOMEMLIMIT":                       {nil, process.Memory{Limit: gib, Used: gib / 2, Garbage: gib / 4}, 0.5},
		"GOMEMLIMIT beyond the machine":         {nil, process.Memory{Limit: 32 * gib, Used: gib / 2}, 0.25},
		"beyond GOMEMLIMIT":                     {nil, process.Memory{Limit: gib, Used: 2 * gib}, 1},
		"GOMEMLIMIT of nothing":                 {nil, process.Memory{Limit: 0, Used: 2}, 1},
		"container, without GOMEMLIMIT":         {memory2(v2Top, oneGiB, 768, 256), process.Memory{Limit: 1 << 63, Used: 5, Garbage: gib / 4}, 0.5},
		"garbage below GOMEMLIMIT":              {memory2(v2Top, oneGiB, 900, 0), process.Memory{Limit: gib * 9 / 10, Used: gib / 4, Garbage: 600 << 20}, 300.0 / 1024},
		"memory that Go knows nothing of":       {memory2(v2Top, oneGiB, 900, 0), process.Memory{Limit: gib / 2, Used: gib / 10, Garbage: 10 << 20}, 890.0 / 1024},
		"most of GOMEMLIMIT":                    {memory2(v2Top, oneGiB, 500, 0), process.Memory{Limit: 1000 << 20, Used: 900 << 20, Garbage: 10 << 20}, 0.9},
		"garbage, and GOMEMLIMIT is above":      {memory2(v2Top, oneGiB, 900, 0), process.Memory{Limit: 2 * gib, Used: gib / 10, Garbage: 600 << 20}, 900.0 / 1024},
		"more garbage than the container holds": {memory2(v2Top, oneGiB, 100, 0), process.Memory{Limit: gib, Used: gib / 8, Garbage: 600 << 20}, 0.125},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, membership("0::/\n", mountOfV2), files{v2Top + "/cgroup.procs": ""}, test.container)
			m.limitGo(test.memory)
			require.InDelta(t, test.want, m.read(rule.SignalMemory), 1e-9)
		})
	}
}

func TestLoadIsThatOfEachProcessor(t *testing.T) {
	require.InDelta(t, 0.5, newMachine(t).read(rule.SignalLoad), 1e-9)
}
