package server

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// modelServer has one processor, which handles requests one after the other, and answers those that it does
// not let in from when it reads them, at a cost.
type modelServer struct {
	backlog
	handling, refusing time.Duration // what it takes
	now                time.Duration
	waiting            []time.Duration // when they were let in
	waits              []time.Duration
	shed               int
}

func newModelServer(perSecond, refusalsPerSecond int) *modelServer {
	s := &modelServer{handling: time.Second / time.Duration(perSecond), refusing: time.Second / time.Duration(refusalsPerSecond)}
	s.setMost(1000)
	return s
}

// run has requests arrive at instants, in order. It returns how long those that were let in waited for an
// answer, and how many were refused.
func (s *modelServer) run(arrivals []time.Duration) (waits []time.Duration, shed int) {
	s.waits, s.shed = nil, 0
	for len(arrivals) > 0 || len(s.waiting) > 0 {
		if len(s.waiting) == 0 {
			s.now = max(s.now, arrivals[0])
		}
		for ; len(arrivals) > 0 && arrivals[0] <= s.now; arrivals = arrivals[1:] {
			s.arrive(arrivals[0])
		}
		if len(s.waiting) > 0 {
			s.handle()
		}
	}
	return s.waits, s.shed
}

func (s *modelServer) arrive(at time.Duration) {
	if int64(len(s.waiting)) >= s.bound.Load() {
		s.shed++
		s.now += s.refusing
		return
	}
	s.waiting = append(s.waiting, at)
}

func (s *modelServer) handle() {
	admitted := s.waiting[0]
	s.observe(admitted, s.now, int64(len(s.waiting)))
	s.waiting = s.waiting[1:]
	s.now += s.handling
	s.waits = append(s.waits, s.now-admitted)
}

// steady returns the instants of so many requests a second.
func steady(from, until time.Duration, perSecond int) (arrivals []time.Duration) {
	for at := from; at < until; at += time.Second / time.Duration(perSecond) {
		arrivals = append(arrivals, at)
	}
	return arrivals
}

func percentile(waits []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[(len(sorted)-1)*percent/100]
}

func TestOverloadIsRefusedRatherThanAnsweredLate(t *testing.T) {
	for name, overload := range map[string]struct{ capacity, refusals, load int }{
		"twice":               {10_000, 50_000, 20_000},
		"four times":          {10_000, 100_000, 40_000},
		"dear requests":       {3_000, 100_000, 9_000},
		"hardly more":         {10_000, 50_000, 10_500},
		"a large machine":     {60_000, 400_000, 150_000},
		"refusals are dear":   {10_000, 25_000, 15_000},
		"more than all it is": {1_000, 100_000, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newModelServer(overload.capacity, overload.refusals)
			s.run(steady(0, 2*time.Second, overload.load))
			waits, shed := s.run(steady(2*time.Second, 5*time.Second, overload.load))
			assert.Positive(t, shed)
			floor := minUnderWay * s.handling * 2 // refusals take time, too
			assert.Less(t, percentile(waits, 50), max(20*time.Millisecond, floor))
			assert.Less(t, percentile(waits, 99), max(50*time.Millisecond, floor))

			// What is left of the processor after the refusals is used.
			left := 3*time.Second - time.Duration(shed)*s.refusing
			assert.Greater(t, time.Duration(len(waits))*s.handling, left*95/100)
		})
	}
}

func TestNothingIsRefusedBelowCapacity(t *testing.T) {
	t.Run("steady", func(t *testing.T) {
		_, shed := newModelServer(10_000, 50_000).run(steady(0, 10*time.Second, 9_500))
		assert.Zero(t, shed)
	})
	t.Run("bursts", func(t *testing.T) {
		var arrivals []time.Duration
		for at := time.Duration(0); at < 10*time.Second; at += 100 * time.Millisecond {
			arrivals = append(arrivals, slices.Repeat([]time.Duration{at}, 200)...) // which take 20 ms
			arrivals = append(arrivals, steady(at+time.Millisecond, at+100*time.Millisecond, 4_000)...)
		}
		_, shed := newModelServer(10_000, 50_000).run(arrivals)
		assert.Zero(t, shed)
	})
	t.Run("few at a time, each of which waits", func(t *testing.T) {
		s := newModelServer(20, 1000)
		_, shed := s.run(slices.Repeat([]time.Duration{0}, minUnderWay))
		assert.Zero(t, shed)
	})
}

func TestOverloadThatIsOverIsForgotten(t *testing.T) {
	s := newModelServer(10_000, 50_000)
	s.run(steady(0, 5*time.Second, 30_000))
	assert.Less(t, s.bound.Load(), int64(300))
	s.run(steady(5*time.Second, 9*time.Second, 8_000))
	assert.Equal(t, s.most, s.bound.Load())
	_, shed := s.run(slices.Repeat([]time.Duration{9 * time.Second}, 900))
	assert.Zero(t, shed)
}

func TestBoundIsNeverAboveWhatTheServerIsToldIs(t *testing.T) {
	s := newModelServer(1000, 10_000)
	s.setMost(3)
	for _, load := range []int{5000, 100, 5000} {
		s.run(steady(s.now, s.now+2*time.Second, load))
		assert.EqualValues(t, 3, s.bound.Load())
	}
}
