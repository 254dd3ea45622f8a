package adaptive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/rule"
)

// usually has a class have a usual response time in seconds, the coefficient of variation of which is 1, and so many calls
// a second that end.
func (s *sharedScene) usually(c *class, mean, rate float64) {
	c.usual.Set(mean, 100)
	c.usual.Observe(limit.Window{Length: time.Second, Ends: 1, Ended: 1, Calls: mean, Times: mean, Squares: 2 * mean * mean}, false)
	c.recent = recent{rate: rate, held: rate * mean, known: usualSpan, span: 1, ends: rate, calls: rate * mean, fine: 10}
}

// What the control knew of the response times of all resources was mostly about those that take long. Once they have
// gone on without the limit, it is about those that are left.
func TestLimitOfResourcesThatAreLeftGoesByTheirUsualResponseTimes(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		known bool // of all that are left
		want  float64
	}{
		"known of all":     {true, (50*0.02 + 100*0.01) / (50*2 + 100*1)},
		"not known of one": {false, 0.5},
	} {
		s := newSharedScene(t, 40)
		a, b, far := s.of("a").class, s.of("b").class, s.of("far").class
		for _, c := range []string{"a", "b", "far"} {
			s.calls(s.of(c), 1, rule.Pass)
		}
		s.usually(a, 0.02, 50)
		if of.known {
			s.usually(b, 0.01, 100)
		}
		b.recent.rate = 100
		s.usually(far, 10, 1)
		a.weight, far.weight = 2, 1000
		common := s.shared.groups[0]
		common.control.Reached(s.now)
		common.control.Verify(0.5)
		for _, c := range []*class{a, b} { // calls took five times as long
			c.tested = tested{ends: 50, took: 250 * c.usual.Mean(), begunEnds: 50, begunTook: 250 * c.usual.Mean()}
		}
		s.now = s.now.Add(200 * time.Millisecond)

		to := common.endWindow(s.now, common.measure(s.now), true)
		require.ElementsMatch(t, []*class{a, b}, to.classes, name)
		assert.InDelta(t, of.want, to.control.Baseline(), 1e-9, name)
	}
}

// When a shortage is found, hardly a call of a remote service has ended, so nobody can tell by how much longer they take.
// They are not limited with others if no more of them come than usual and they do not look slow as those do.
func TestResourceOfWhichNoMoreCallsComeIsNotLimitedForWantOfEvidence(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		came   int           // calls
		took   time.Duration // of the first two of them
		spared bool
	}{
		"as many, as long":      {3, 50 * time.Millisecond, true},
		"as many, six times":    {3, 300 * time.Millisecond, false},
		"many more, as long":    {20, 50 * time.Millisecond, false},
		"a single one, as long": {1, 50 * time.Millisecond, true},
	} {
		s := newSharedScene(t, 400)
		slow, remote := s.of("slow"), s.of("remote")
		s.usually(slow.class, 0.02, 100)
		s.usually(remote.class, 0.05, 20)
		others, calls := s.calls(slow, 40, rule.Pass), s.calls(remote, of.came, rule.Pass)
		s.now = s.now.Add(of.took)
		s.end(calls[:min(2, len(calls))], false)
		s.now = s.now.Add(max(100*time.Millisecond-of.took, 0))
		s.end(others, false)

		assert.Equal(t, of.spared, remote.class.isUnlike(slow.class, slow.class.usual.Mean(), s.now), name)
	}
}

// A dependency becomes slow at the same time as more calls come of another resource than can be done. Under their common
// limit, the slow one is not the one that the limit is about: it leaves, and not the other one.
func TestResourceThatIsSlowForAnotherReasonLeavesTheLimit(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ more, slowMore, leaves bool }{
		"more calls of the other":  {true, false, true},
		"more calls of both":       {true, true, false},
		"more calls of none":       {false, false, false},
		"more calls of it, though": {false, true, false},
	} {
		s := newSharedScene(t, 40)
		api, pay := s.of("api"), s.of("pay")
		s.calls(api, 1, rule.Pass)
		s.calls(pay, 1, rule.Pass)
		s.usually(api.class, 0.01, 1000)
		s.usually(pay.class, 0.05, 40)
		common := s.shared.groups[0]
		to := common.freeGroup(s.now)
		for _, c := range []*class{api.class, pay.class} {
			common.goApart(c, to, s.now)
		}
		to.control.Reached(s.now)
		to.control.Enforce(s.now)
		api.class.recent.surged = of.more
		pay.class.recent.slow, pay.class.recent.surged = true, of.slowMore
		pay.class.recent.calls, pay.class.recent.ends = 100, 40

		to.release(pay.class, s.now)
		if of.leaves {
			assert.Same(t, to, api.class.group.Load(), name)
			apart := pay.class.group.Load()
			assert.NotSame(t, to, apart, name)
			assert.Positive(t, apart.index, name)
			assert.False(t, apart.control.Limited(), name)
		} else {
			assert.Same(t, to, pay.class.group.Load(), name)
		}
	}
}

// A resource that was slow alone is charged with how long it takes now once others are found short of something: it may
// be that which takes their workers.
func TestResourceThatWasSlowAloneComesUnderTheLimitOfThoseThatAreShortAfterIt(t *testing.T) {
	t.Parallel()
	s := newSharedScene(t, 40)
	pages, report := s.of("pages"), s.of("report")
	s.calls(pages, 1, rule.Pass)
	s.calls(report, 1, rule.Pass)
	s.usually(pages.class, 0.01, 1000)
	s.usually(report.class, 0.02, 16)
	common := s.shared.groups[0]
	apart := common.freeGroup(s.now)
	common.goApart(report.class, apart, s.now)
	report.class.recent.slow, report.class.recent.calls, report.class.recent.ends = true, 48, 15
	common.control.Reached(s.now)
	common.control.Enforce(s.now)
	before := common.control.Limit()

	common.gatherSlow(s.now)
	assert.Same(t, common, report.class.group.Load())
	assert.InDelta(t, 3, report.class.usual.Mean(), 1e-9)
	assert.InDelta(t, before, common.control.Limit(), 1e-9)
}
