package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

func askTerms(limit float64) fleet.Terms {
	return fleet.Terms{Key: "flow/a", Limit: limit, Window: time.Second, Burst: limit, Buckets: 1}
}

// ask asks and returns the answers that came at once.
func askFor(s *stepped, asker *ask.Asker, n int32) *[]ask.Answer {
	answers := new([]ask.Answer)
	asker.Ask(s.now(), n, func(a ask.Answer) { *answers = append(*answers, a) })
	return answers
}

func TestAskIsExact(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]fleet.Operation{
		"fixed": fleet.AskFixedWindow, "log": fleet.AskSlidingLog, "bucket": fleet.AskTokenBucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStepped(t)
			asker := s.member.Asker(askTerms(5), operation, fleet.OutageLast)
			var all []*[]ask.Answer
			for range 7 {
				all = append(all, askFor(s, asker, 1))
			}
			s.step()
			allowed := 0
			for _, answers := range all {
				if assert.Len(t, *answers, 1) && (*answers)[0].Allowed {
					allowed++
				}
			}
			assert.Equal(t, 5, allowed)
			last := (*all[6])[0]
			assert.Positive(t, last.Retry)
			assert.False(t, last.Outage)

			assert.Equal(t, last.Retry, asker.DeniedFor(s.now(), 1).Round(ms), "until then nobody asks")
			sent := len(s.sent)
			assert.Len(t, *askFor(s, asker, 1), 1, "answered at once")
			s.step()
			assert.Len(t, s.sent, sent)
			s.clock.Advance(last.Retry + 2*ms)
			assert.Zero(t, asker.DeniedFor(s.now(), 1))
			answers := askFor(s, asker, 1)
			s.step()
			assert.True(t, (*answers)[0].Allowed)
		})
	}
}

func TestThrottleAnswersWhenTheCallMayPass(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	terms := fleet.Terms{Key: "flow/a", Limit: 10, Window: time.Second, Burst: 1, MaxWait: 150 * ms}
	asker := s.member.Asker(terms, fleet.AskThrottle, fleet.OutageLast)
	one, two, three := askFor(s, asker, 1), askFor(s, asker, 1), askFor(s, asker, 1)
	s.step()
	assert.Zero(t, (*one)[0].Wait)
	assert.Equal(t, 100*ms, (*two)[0].Wait)
	assert.False(t, (*three)[0].Allowed)
}

func TestAnswerThatIsLateIsDecidedByOnOutageAtTheTimeout(t *testing.T) {
	t.Parallel()
	for onOutage, want := range map[fleet.OnOutage]bool{fleet.OutageOpen: true, fleet.OutageClosed: false} {
		s := newStepped(t)
		asker := s.member.Asker(askTerms(5), fleet.AskFixedWindow, onOutage)
		s.run(10 * ms)
		answers := askFor(s, asker, 1)
		batches := s.member.Step(s.now())
		assert.Len(t, batches, 1)
		s.clock.Advance(exchange.DefaultTimeout - 1)
		s.member.Step(s.now())
		assert.Empty(t, *answers)
		s.clock.Advance(1)
		assert.LessOrEqual(t, s.member.Due(), s.now())
		s.member.Step(s.now())
		if assert.Len(t, *answers, 1) {
			assert.Equal(t, want, (*answers)[0].Allowed)
			assert.True(t, (*answers)[0].Outage)
		}
		// From now on, no call waits.
		assert.Len(t, *askFor(s, asker, 1), 1)
		assert.Equal(t, want, (*askFor(s, asker, 1))[0].Allowed)
	}
}

// What was decided in an outage is paid when it ends, and what a late answer has taken goes
// back.
func TestAskerPaysAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(askTerms(100), fleet.AskSlidingLog, fleet.OutageOpen)
	s.run(10 * ms)
	s.isDown = true
	for range 3 {
		askFor(s, asker, 1)
		s.run(100 * ms)
	}
	assert.False(t, s.member.Status(s.now()).Connected)
	for range 10 {
		assert.True(t, (*askFor(s, asker, 1))[0].Allowed)
	}
	s.isDown = false
	s.run(400 * ms)
	assert.True(t, s.member.Status(s.now()).Connected)
	answers := askFor(s, asker, 1)
	s.step()
	assert.EqualValues(t, 100-13-1, (*answers)[0].Remaining)
}

func TestAskerGivesBackAndSettles(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(askTerms(10), fleet.AskTokenBucket, fleet.OutageLast)
	askFor(s, asker, 6)
	s.step()
	asker.GiveBack(s.now(), 2)
	asker.Settle(s.now(), 3)
	s.step()
	answers := askFor(s, asker, 1)
	s.step()
	assert.EqualValues(t, 10-6+2-3-1, (*answers)[0].Remaining)
	assert.False(t, asker.Idle(s.now()))
	s.clock.Advance(2 * time.Second)
	assert.True(t, asker.Idle(s.now()))
	asker.Release(s.now())
	asker.Release(s.now())
	assert.Empty(t, s.member.Status(s.now()).Limits)
	assert.True(t, (*askFor(s, asker, 1))[0].Outage, "nobody asks for a limit that is gone")
}

// What calls turn out to have taken more, while the backend does not answer, is paid after it.
func TestAskerPaysWhatWasSettledInAnOutage(t *testing.T) {
	t.Parallel()
	for _, operation := range []fleet.Operation{fleet.AskFixedWindow, fleet.AskSlidingLog} {
		s := newStepped(t)
		terms := askTerms(100)
		terms.Window = time.Minute
		asker := s.member.Asker(terms, operation, fleet.OutageClosed)
		askFor(s, asker, 1)
		s.run(10 * ms)
		s.isDown = true
		for range 3 {
			askFor(s, asker, 1)
			s.run(100 * ms)
		}
		assert.False(t, s.member.Status(s.now()).Connected)
		asker.Settle(s.now(), 5)
		s.isDown = false
		s.run(400 * ms)
		answers := askFor(s, asker, 1)
		s.step()
		assert.EqualValues(t, 100-1-5-1, (*answers)[0].Remaining)
	}
}
