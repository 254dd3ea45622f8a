package limit

import "math"

// baseline is what is known of the mean response time of the service when it is not busy.
type baseline struct {
	mean     float64 // seconds; 0 before anything is known
	ends     float64 // calls that it rests on, at most some
	verified bool    // it was measured when the service was not busy

	probed, seen candidate // of probes, and of what was seen without
}

// start is how many calls were under way when the first of them ended, and their mean response time in seconds.
type start struct{ response, calls float64 }

// rate returns how many calls ended in a second.
func (s start) rate() float64 { return s.calls / max(s.response, minResponse) }

// candidate is a mean response time that differs from the baseline, and awaits its
// confirmation by others.
type candidate struct {
	direction float64 // 1 longer, -1 shorter, 0 none
	count     int
}

// known says whether there is a baseline, be it a guess.
func (b *baseline) known() bool { return b.mean > 0 }

// guess sets a baseline that is to be verified.
func (b *baseline) guess(mean float64) { b.set(max(mean, minResponse), 1) }

func (b *baseline) set(mean, ends float64) {
	b.mean, b.ends = mean, ends
	b.probed, b.seen = candidate{}, candidate{}
}

// learn takes a mean response time of some calls into the baseline, measured by a probe or
// not. One that differs much has to be confirmed first. It returns whether the baseline
// has been replaced.
func (b *baseline) learn(mean, ends, most, variation float64, probe bool) bool {
	mean = max(mean, minResponse)
	deviation := mean/b.mean - 1
	of, need := &b.seen, 3
	if probe {
		of, need = &b.probed, 2
	}
	switch {
	case !b.verified:
		b.verified = true
		b.set(mean, min(ends, most))
		return true
	case math.Abs(deviation) <= tolerance, math.Abs(deviation) < 3*math.Sqrt(variation/ends):
		b.mean += deviation * b.mean * ends / (ends + b.ends)
		b.ends = min(b.ends+ends, most)
		*of = candidate{}
		return false
	case deviation < -farShorter:
		need--
	case deviation > farLonger && probe:
		need--
	}
	direction := math.Copysign(1, deviation)
	if of.direction != direction {
		*of = candidate{direction: direction}
	}
	if of.count++; of.count < need {
		return false
	}
	b.set(mean, min(ends, most))
	return true
}

// awaitsProbe says whether a probe has measured a longer response time that another one
// has to confirm.
func (b *baseline) awaitsProbe() bool { return b.probed.direction > 0 }
