package simulate

import "time"

// Signal is what the signals of the system show from a time on. Those that are
// nil stay as they were.
type Signal struct {
	// At is from 0 to [MaxDuration], and later than that of the signal before.
	At time.Duration

	// CPU is the share of the processors that is in use, from 0 to 1. Before it
	// is given it is the utilisation of the servers: the share of their workers
	// that was busy in the last full second, on average; 0 without servers.
	CPU *float64

	// Memory is the share of the memory that is in use, from 0 to 1. Before it is
	// given it is 0.
	Memory *float64

	// Load is the load average of the machine, 0 or more. Before it is given it
	// is 0.
	Load *float64
}

// reading is what all signals show at an instant.
type reading struct{ cpu, memory, load float64 }

// readSignals returns what the signals of a load show at now, while the servers
// have the given utilisation.
func readSignals(signals []Signal, now time.Duration, utilisation float64) reading {
	r := reading{cpu: utilisation}
	for _, s := range signals {
		if s.At > now {
			break
		}
		for _, v := range []struct {
			to   *float64
			from *float64
		}{{&r.cpu, s.CPU}, {&r.memory, s.Memory}, {&r.load, s.Load}} {
			if v.from != nil {
				*v.to = *v.from
			}
		}
	}
	return r
}
