package console

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// maxSkew is how far clocks of instances may be apart: the seconds of one that is further off are those
// of the others that are that far ago.
const maxSkew = 3 * time.Second

// series is what happened second by second: 59 seconds that are over, the oldest first.
type series struct {
	Start   int64     `json:"start"` // of the first, in seconds since 1970
	Passed  []uint64  `json:"passed"`
	Waited  []uint64  `json:"waited"` // of those that passed: the calls that ended a wait
	Refused []uint64  `json:"refused"`
	Failed  []uint64  `json:"failed,omitempty"`
	Mean    []float64 `json:"mean,omitempty"` // response time in seconds
	Max     []float64 `json:"max,omitempty"`
	Flight  []uint64  `json:"inFlight,omitempty"` // the most at once, of each instance, added up
}

// length is how many seconds a series has: the one that goes on is left out.
const length = 59

func newSeries(start int64) series {
	return series{
		Start: start, Passed: make([]uint64, length), Waited: make([]uint64, length), Refused: make([]uint64, length),
		Failed: make([]uint64, length), Mean: make([]float64, length), Max: make([]float64, length), Flight: make([]uint64, length),
	}
}

// newBriefSeries returns a series of the counts alone.
func newBriefSeries(start int64) series {
	counts := make([]uint64, 4*length)
	column := func(n int) []uint64 { return counts[n*length:][:length:length] }
	return series{Start: start, Passed: column(0), Waited: column(1), Refused: column(2), Failed: column(3)}
}

// startOf returns the second at which series begin that have all instances: the earliest one, unless the
// clock of its instance is far behind the others.
func startOf(starts []time.Time) int64 {
	if len(starts) == 0 {
		return 0
	}
	latest := slices.MaxFunc(starts, time.Time.Compare)
	first := latest
	for _, s := range starts {
		if latest.Sub(s) <= maxSkew && s.Before(first) {
			first = s
		}
	}
	return first.Unix()
}

// add adds the seconds of an instance, each to the same second of the calendar.
func (s *series) add(of *inspect.Seconds) {
	if of == nil {
		return
	}
	shift := int(s.Start - of.Start.Unix())
	for i := range length {
		j := i + shift
		if j < 0 || j >= len(of.Passed) {
			continue
		}
		waited := min(at(of.Waited, j), of.Passed[j])
		s.Passed[i] += of.Passed[j] - waited
		s.Waited[i] += waited
		s.Refused[i] += at(of.Refused, j)
		s.Failed[i] += at(of.Failed, j)
		if s.Flight != nil {
			s.Flight[i] += at(of.MaxInFlight, j)
			s.Max[i] = max(s.Max[i], at(of.MaxResponseTime, j))
		}
	}
}

// addMeans adds mean response times, which depend on how many calls ended in each instance.
func addMeans(s *series, all []*inspect.Seconds) {
	for i := range length {
		var calls, sum float64
		for _, of := range all {
			j := i + int(s.Start-of.Start.Unix())
			n := float64(at(of.Completed, j))
			calls, sum = calls+n, sum+n*at(of.MeanResponseTime, j)
		}
		if calls > 0 {
			s.Mean[i] = sum / calls
		}
	}
}

// at returns an element, 0 if there is none: answers of other processes may have any length.
func at[T uint64 | float64](of []T, i int) T {
	if i < 0 || i >= len(of) {
		return 0
	}
	return of[i]
}

// shiftedSeconds returns counts of an instance in the seconds of a series.
func shiftedSeconds(s *series, of *inspect.Seconds, counts []uint64) []uint64 {
	shifted := make([]uint64, length)
	if of == nil {
		return shifted
	}
	for i := range shifted {
		shifted[i] = at(counts, i+int(s.Start-of.Start.Unix()))
	}
	return shifted
}

func addAll(to, more []uint64) {
	for i := range to {
		to[i] += at(more, i)
	}
}

// last returns what a series has for the last second that is over.
func last(of []uint64) uint64 {
	if len(of) == 0 {
		return 0
	}
	return of[len(of)-1]
}

// slower returns the percentiles of the slower instance: those of all calls cannot be told from them.
func slower(a, b *inspect.ResponseTimes) *inspect.ResponseTimes {
	switch {
	case a == nil:
		return b
	case b == nil, a.P99 >= b.P99:
		return a
	}
	return b
}

// valueOf returns a number that may not be known.
func valueOf(n *uint64) uint64 { return *cmp.Or(n, new(uint64)) }
