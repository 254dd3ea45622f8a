// Package signal reads how busy the process, its container and its machine are: the signals
// that rules can follow, and that adaptive rules can shed by.
//
//	engine := core.New(core.Config{Signals: signal.System()})
//
// The engine reads the signals that rules in force name, four times a second, and no others.
// [System] has these:
//
//   - cpu: the share, 0 to 1, of the processor time that the process may use. With a CPU
//     quota (container limit) of less than its processors it is the use of the quota, by all
//     that share it. Without one it is how busy the processors are that the process may run
//     on, by its CPU set and affinity, whoever uses them.
//   - throttled: the share of time in which threads of the container were stopped because
//     it had used up its quota. The kernel adds up processors, so that 1 may also be two of
//     them for half of the time. 0 without a quota.
//   - load: the load average of the last minute, divided by the processors of the machine.
//     The load of a container cannot be read; that of the machine has its neighbors too.
//   - memory: the share, 0 to 1, of the memory limit that is used. Limits are GOMEMLIMIT
//     and those of the container; of several, the one counts that is used most. Without any
//     it is the memory of the machine. Page cache that the kernel can drop is not in use.
//     Below GOMEMLIMIT, nor is what a garbage collection would free, as far as the last one
//     tells: with GOGC=off, garbage alone fills memory up to the limit.
//   - schedulerDelay: how long goroutines that could run waited for a processor, in
//     seconds, the 99th percentile since the last reading.
//   - gc: the share of processor time, 0 to 1, that garbage collection took from the
//     program. It counts collections when they end.
//
// The signals cpu and throttled are means of the last second, in which a quota has ten
// periods; nothing else is smoothed. cpu, throttled, schedulerDelay and gc are counted from
// one reading to the next: the first is 0, one within 50 ms of the last repeats it, and one
// after a long pause tells of the pause.
//
// cpu, throttled and load can be read on Linux only, from /proc and the cgroups of version 1
// or 2 below /sys/fs/cgroup; memory without GOMEMLIMIT too. What cannot be read is an error
// that says what is missing. The engine logs it once, shows it in its status, and rules that
// need the signal let calls pass until it can be read again.
//
// [Map] is a source of signals of your own, and [Override] combines it with those of the
// system:
//
//	signal.Override(signal.System(), signal.Map{"connections": pool.Usage})
package signal
