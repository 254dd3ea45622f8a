package server

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// modelServer has one processor. It reads requests in the order in which they come, and handles those that it
// lets in after all that it has read by then. It answers the others when it reads them, at a cost.
type modelServer struct {
	backlog
	handling, refusing time.Duration // what it takes
	now                time.Duration
	stalls             map[time.Duration]time.Duration // when the machine stands still, and for how long
	unread             []time.Duration                 // when they arrived
	read               []time.Duration                 // those that were let in
	waits              []time.Duration
	shed               int

	window time.Duration // its end
	waited time.Duration // all of those that were read or handled in it
	ran    int
}

func newModelServer(perSecond, refusalsPerSecond int) *modelServer {
	s := &modelServer{handling: time.Second / time.Duration(perSecond), refusing: time.Second / time.Duration(refusalsPerSecond)}
	s.setMost(2000)
	s.window = backlogWindow
	return s
}

// run has requests arrive at instants, in order. It returns how long those that were let in waited for an
// answer, and how many were refused.
func (s *modelServer) run(arrivals []time.Duration) (waits []time.Duration, shed int) {
	s.waits, s.shed = nil, 0
	for len(arrivals)+len(s.unread)+len(s.read) > 0 {
		if len(s.unread)+len(s.read) == 0 {
			s.pass(max(0, arrivals[0]-s.now))
		}
		for ; len(arrivals) > 0 && arrivals[0] <= s.now; arrivals = arrivals[1:] {
			s.unread = append(s.unread, arrivals[0])
		}
		s.step()
	}
	return s.waits, s.shed
}

// step reads all requests that have come, and handles those that were let in.
func (s *modelServer) step() {
	for _, at := range s.unread {
		s.ran++
		s.waited += s.now - at
		if s.admits(int64(len(s.read) + 1)) {
			s.read = append(s.read, at)
		} else {
			s.shed++
			s.pass(s.refusing)
		}
	}
	since := s.now
	for _, at := range s.read {
		s.ran++
		s.waited += s.now - since
		s.pass(s.handling)
		s.waits = append(s.waits, s.now-at)
	}
	s.unread, s.read = s.unread[:0], s.read[:0]
}

// pass has time pass, and ends windows.
func (s *modelServer) pass(span time.Duration) {
	end := s.now + span
	for at, stall := range s.stalls {
		if s.now < at && at <= end {
			end += stall
		}
	}
	if s.now = end; s.now >= s.window {
		s.window = s.now + backlogWindow
		s.adjust(s.waited / time.Duration(max(s.ran, 1)))
		s.waited, s.ran = 0, 0
		s.peak.Store(int64(len(s.read)))
	}
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
			begin := max(2*time.Second, s.now)
			waits, shed := s.run(steady(begin, begin+3*time.Second, overload.load))
			assert.Positive(t, shed)
			floor := minUnderWay * s.handling * 4 // refusals take time, too
			assert.Less(t, percentile(waits, 50), max(30*time.Millisecond, floor))
			assert.Less(t, percentile(waits, 99), max(60*time.Millisecond, floor))

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
	t.Run("stalls", func(t *testing.T) {
		s := newModelServer(10_000, 50_000)
		s.stalls = map[time.Duration]time.Duration{
			time.Second: 150 * time.Millisecond, 3 * time.Second: 200 * time.Millisecond, 5 * time.Second: 100 * time.Millisecond,
		}
		_, shed := s.run(steady(0, 7*time.Second, 8_000))
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
	s.run(steady(5*time.Second, 10*time.Second, 8_000))
	assert.Equal(t, s.most, s.bound.Load())
	_, shed := s.run(slices.Repeat([]time.Duration{10 * time.Second}, 900))
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

func TestBoundFallsFromWhatIsUnderWayAndNotWhileItGetsBetter(t *testing.T) {
	var b backlog
	b.setMost(2000)
	b.admits(500)
	for range backlogPatience - 1 {
		b.adjust(2 * backlogTarget)
	}
	assert.EqualValues(t, 2000, b.bound.Load(), "it may have been a stall")
	b.adjust(2 * backlogTarget)
	assert.EqualValues(t, 250, b.bound.Load())
	b.adjust(2*backlogTarget - time.Microsecond)
	assert.EqualValues(t, 250, b.bound.Load(), "they wait less")
	b.adjust(10 * backlogTarget)
	assert.EqualValues(t, 125, b.bound.Load(), "at once, but at most by half")
	assert.True(t, b.admits(125))
	assert.False(t, b.admits(126))
}
