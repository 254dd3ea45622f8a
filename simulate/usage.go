package simulate

import (
	"slices"
	"time"
)

// usage is how busy the servers of an instance are, for the signals that show it.
type usage struct {
	servers []*server
	cpu     []*server // those that the CPU signal is about

	cpuRead, throttledRead time.Duration // when these were read last
}

// newUsage returns the usage of servers. Those that have time slices are processors, and
// what others do is no processor's work; without processors, all workers are taken for
// some.
func newUsage(servers []*server) usage {
	u := usage{servers: servers}
	isProcessor := func(s *server) bool { return s.of.TimeSlice > 0 }
	processors := slices.ContainsFunc(servers, isProcessor)
	for _, s := range servers {
		if isProcessor(s) || !processors && !s.of.Unlimited {
			u.cpu = append(u.cpu, s)
		}
	}
	return u
}

// utilisation returns the share of the workers that was busy, on average, in the time
// since the last call of this function; 0 without servers.
func (u *usage) utilisation(now time.Duration) float64 {
	elapsed := now - u.cpuRead
	u.cpuRead = now
	var done, workers float64
	for _, s := range u.cpu {
		s.count(now)
		done += float64(s.workDone)
		s.workDone = 0
		workers += s.workers()
	}
	if workers == 0 || elapsed == 0 {
		return 0
	}
	return min(1, done/(workers*float64(elapsed))) // time slices are taken as they begin
}

// schedulerDelay returns the 99th percentile of how long calls waited for a processor, in
// seconds, of those that began to run since the last call of this function; 0 if there
// were none. Waits are measured from the first call on.
func (u *usage) schedulerDelay() float64 {
	var waits []time.Duration
	for _, s := range u.servers {
		if s.of.TimeSlice > 0 {
			waits = append(waits, s.waits...)
			s.waits, s.measuresWaits = s.waits[:0], true
		}
	}
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return seconds(percentile(waits, 99))
}

// throttled returns the share of the time since the last call of this function in which
// work stood still because a quota was used up, that of the server with the most.
func (u *usage) throttled(now time.Duration) float64 {
	elapsed := now - u.throttledRead
	var most time.Duration
	for _, s := range u.servers {
		most = max(most, s.quota.stoodStill(u.throttledRead, now))
	}
	u.throttledRead = now
	if elapsed == 0 {
		return 0
	}
	return float64(most) / float64(elapsed)
}

// count adds the work done until now.
func (s *server) count(now time.Duration) {
	if !s.of.Quota.present() {
		s.workDone += time.Duration(s.busy) * (now - s.counted)
	}
	s.counted = now
}

// workers returns how many workers can be busy all the time.
func (s *server) workers() float64 {
	if s.of.Quota.present() {
		return float64(s.of.Quota.Time) / float64(s.of.Quota.Period)
	}
	return float64(s.of.Workers)
}
