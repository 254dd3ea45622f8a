package signal

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal/internal/process"
)

// container is a process in a namespace of cgroup v2, with a quota of one processor and
// 1 GiB.
func container() files {
	return join(membership("0::/\n", mountOfV2), cpu2(v2Top, "100000", 7, 1), memory2(v2Top, oneGiB, 512, 0))
}

// What cannot be read is an error that says which file or limit, and in a second reading
// it can be read again.
func TestUnreadableSignalSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		write      files
		unreadable string
		signal     rule.Signal
		says       string
	}{
		"stat not readable":        {unreadable: "proc/stat", signal: rule.SignalLoad, says: "signal: load: read /proc/stat: permission denied"},
		"stat empty":               {write: join(files{"proc/stat": ""}, noQuota()), signal: rule.SignalCPU, says: "read /proc/stat: it has no processors"},
		"stat of one word":         {write: join(files{"proc/stat": "cpu"}, noQuota()), signal: rule.SignalCPU, says: "read /proc/stat: it has no processors"},
		"stat garbled":             {write: join(files{"proc/stat": "cpu0 1 2 3 x 5\n"}, noQuota()), signal: rule.SignalCPU, says: `"x" is no number`},
		"stat negative":            {write: join(files{"proc/stat": "cpu0 1 2 3 -4 5\n"}, noQuota()), signal: rule.SignalCPU, says: `"-4" is no number`},
		"stat cut off":             {write: join(files{"proc/stat": "cpu0 1 2\n"}, noQuota()), signal: rule.SignalCPU, says: "is no line of a processor"},
		"processor of no number":   {write: join(files{"proc/stat": "cpufoo 1 2 3 4 5\n"}, noQuota()), signal: rule.SignalCPU, says: "is no line of a processor"},
		"status not readable":      {write: noQuota(), unreadable: "proc/self/status", signal: rule.SignalCPU, says: "read /proc/self/status: permission denied"},
		"affinity garbled":         {write: join(files{"proc/self/status": "Cpus_allowed_list:\t0-3,x\n"}, noQuota()), signal: rule.SignalCPU, says: `Cpus_allowed_list: "x" is no range`},
		"affinity backwards":       {write: join(files{"proc/self/status": "Cpus_allowed_list:\t3-0\n"}, noQuota()), signal: rule.SignalCPU, says: `"3-0" is no range`},
		"load empty":               {write: files{"proc/loadavg": ""}, signal: rule.SignalLoad, says: `read /proc/loadavg: "" is no load average`},
		"load is no number":        {write: files{"proc/loadavg": "NaN 1 1"}, signal: rule.SignalLoad, says: `"NaN" is no load average`},
		"load infinite":            {write: files{"proc/loadavg": "1e999 1 1"}, signal: rule.SignalLoad, says: "is no load average"},
		"no MemAvailable":          {write: files{"proc/meminfo": "MemTotal: 5 kB\n"}, signal: rule.SignalMemory, says: `read /proc/meminfo: it has no "MemAvailable"`},
		"no MemTotal":              {write: files{"proc/meminfo": "MemAvailable: 5 kB\n"}, signal: rule.SignalMemory, says: `it has no "MemTotal"`},
		"MemTotal huge":            {write: files{"proc/meminfo": "MemTotal: 99999999999999999999 kB\nMemAvailable: 5 kB\n"}, signal: rule.SignalMemory, says: "cannot be"},
		"MemTotal zero":            {write: files{"proc/meminfo": "MemTotal: 0 kB\nMemAvailable: 5 kB\n"}, signal: rule.SignalMemory, says: "cannot be"},
		"cgroup not readable":      {unreadable: "proc/self/cgroup", signal: rule.SignalThrottled, says: "signal: throttled: read /proc/self/cgroup: permission denied"},
		"mounts not readable":      {unreadable: "proc/self/mountinfo", signal: rule.SignalMemory, says: "read /proc/self/mountinfo: permission denied"},
		"nothing mounted":          {write: membership("0::/shop\n", ""), signal: rule.SignalCPU, says: "the process is in the cgroup /shop, but no cgroup file system with the controller cpu is mounted: mount it at /sys/fs/cgroup"},
		"v1 without the cpu":       {write: membership("3:cpu,cpuacct:/shop\n0::/\n", mountOfV2), signal: rule.SignalCPU, says: "no cgroup file system with the controller cpu is mounted"},
		"outside of the namespace": {write: membership("0::/../other\n", mountOfV2), signal: rule.SignalCPU, says: "the cgroup /../other of the process is outside of its cgroup namespace"},
		"cgroups of the host":      {write: membership("0::/\n", "31 23 0:28 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n"), signal: rule.SignalMemory, says: "the cgroup file system at /sys/fs/cgroup does not show the cgroup of the process"},
		"cgroup not to be seen":    {write: membership("0::/docker/0a1b\n", mountOfV2), signal: rule.SignalCPU, says: "the cgroup /docker/0a1b of the process is not to be seen below /sys/fs/cgroup"},
		"quota not readable":       {unreadable: v2Top + "/cpu.max", signal: rule.SignalCPU, says: "read /sys/fs/cgroup/cpu.max: permission denied"},
		"quota garbled":            {write: files{v2Top + "/cpu.max": "lots 100000\n"}, signal: rule.SignalCPU, says: `read /sys/fs/cgroup/cpu.max: "lots" is no number`},
		"quota without a period":   {write: files{v2Top + "/cpu.max": "100000\n"}, signal: rule.SignalCPU, says: "is no quota and period"},
		"period garbled":           {write: files{v2Top + "/cpu.max": "max 0x1\n"}, signal: rule.SignalCPU, says: `"0x1" is no number`},
		"quota of nothing":         {write: files{v2Top + "/cpu.max": "0 100000\n"}, signal: rule.SignalCPU, says: "a quota of 0 in a period of 100000 cannot be"},
		"period of nothing":        {write: files{v2Top + "/cpu.max": "5 0\n"}, signal: rule.SignalCPU, says: "in a period of 0 cannot be"},
		"usage missing":            {write: files{v2Top + "/cpu.stat": "throttled_usec 3\n"}, signal: rule.SignalCPU, says: `read /sys/fs/cgroup/cpu.stat: it has no "usage_usec"`},
		"throttled garbled":        {write: files{v2Top + "/cpu.stat": "usage_usec 3\nthrottled_usec\n"}, signal: rule.SignalCPU, says: `it has no "throttled_usec"`},
		"limit garbled":            {write: files{v2Top + "/memory.max": "1G\n"}, signal: rule.SignalMemory, says: `read /sys/fs/cgroup/memory.max: "1G\n" is no number`},
		"limit not readable":       {unreadable: v2Top + "/memory.high", signal: rule.SignalMemory, says: "read /sys/fs/cgroup/memory.high: permission denied"},
		"memory in use garbled":    {write: files{v2Top + "/memory.current": "-5\n"}, signal: rule.SignalMemory, says: `read /sys/fs/cgroup/memory.current: "-5\n" is no number`},
		"cache missing":            {write: files{v2Top + "/memory.stat": "file 4\n"}, signal: rule.SignalMemory, says: `read /sys/fs/cgroup/memory.stat: it has no "inactive_file"`},
		"v1 quota garbled":         {write: join(onV1("/", "/"), files{v1CPU + "/cpu.cfs_quota_us": "-2\n"}), signal: rule.SignalCPU, says: `read /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us: "-2\n" is no number`},
		"v1 without a period":      {write: join(onV1("/", "/"), files{v1CPU + "/cpu.cfs_quota_us": "5\n"}), signal: rule.SignalCPU, says: "read /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us: file does not exist"},
		"v1 without cpuacct": {
			write: join(membership("1:cpu:/\n", "32 31 0:29 / /cpu rw - cgroup cgroup rw,cpu\n"), cpu1("cpu", "x", "50000", 1, 0)), signal: rule.SignalCPU,
			says: "the controller cpuacct, which counts CPU time, is not mounted",
		},
		"unknown": {signal: "connections", says: "signal: connections: there is no such signal of the system; known are cpu, gc, load, memory, schedulerDelay, throttled"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, container(), test.write)
			m.unreadable = test.unreadable
			for range 2 { // and again
				_, err := m.source.Read(t.Context(), test.signal)
				require.ErrorContains(t, err, test.says)
				m.clock.Advance(250 * time.Millisecond)
			}
			if test.signal == "connections" {
				return
			}
			m.unreadable = ""
			m.write(join(boot(), container()))
			m.read(test.signal)
		})
	}
}

// noQuota are the files of a container whose CPU time is not limited.
func noQuota() files { return files{v2Top + "/cpu.max": "max 100000\n"} }

func TestProcessorsThatAreNotCountedAreAnError(t *testing.T) {
	m := newMachine(t)
	m.read(rule.SignalCPU)
	require.Zero(t, m.after(250*time.Millisecond, nil, rule.SignalCPU))
	require.Zero(t, m.after(750*time.Millisecond, nil, rule.SignalCPU))
	m.clock.Advance(250 * time.Millisecond)
	_, err := m.source.Read(t.Context(), rule.SignalCPU)
	require.ErrorContains(t, err, "read /proc/stat: its times of 4 processors do not advance")
}

func TestOtherSystemsSayWhatTheyCannotRead(t *testing.T) {
	s := newSystem(nil, "plan9", newMachine(t).clock)
	for _, signal := range []rule.Signal{rule.SignalCPU, rule.SignalLoad, rule.SignalThrottled} {
		_, err := s.Read(t.Context(), signal)
		require.ErrorContains(t, err, "cannot be read on plan9, only on Linux")
	}
	for _, signal := range []rule.Signal{rule.SignalGC, rule.SignalSchedulerDelay} {
		_, err := s.Read(t.Context(), signal)
		require.NoError(t, err)
	}
	s.heap = func() (process.Memory, error) {
		return process.Memory{Limit: math.MaxUint64, Used: 5}, nil
	}
	_, err := s.Read(t.Context(), rule.SignalMemory)
	require.ErrorContains(t, err, "no limit that can be read on plan9: set GOMEMLIMIT")
	s.heap = func() (process.Memory, error) { return process.Memory{Limit: 1000, Used: 700}, nil }
	value, err := s.Read(t.Context(), rule.SignalMemory)
	require.NoError(t, err)
	require.InDelta(t, 0.7, value, 1e-9)
}
