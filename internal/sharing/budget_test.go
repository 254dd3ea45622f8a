package sharing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

func TestReleasedBudgetHandsBackWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	for range 100 {
		budget.Take(s.now(), 1)
		s.run(2 * ms)
	}
	assert.Positive(t, budget.Status(s.now()).Remaining)
	budget.Release(s.now())
	budget.Release(s.now())
	assert.False(t, budget.Take(s.now(), 1))
	s.run(1500 * ms)
	assert.Zero(t, s.store.Len(), "as though nothing had been leased")
	assert.Empty(t, s.member.Status(s.now()).Limits)
	s.run(2 * time.Second)
	assert.Greater(t, s.member.Due(), s.now().Add(time.Hour), "there is nothing to announce")
}

func TestLimitThatIsChangedToNothingRefusesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	for range 100 {
		budget.Take(s.now(), 1)
		s.run(2 * ms)
	}
	budget.Change(bucketOf(0), fleet.OutageLast, s.now())
	s.run(10 * ms)
	assert.False(t, budget.Take(s.now(), 1))
	assert.Equal(t, fleet.Never, budget.RetryAfter(s.now(), 1))
	budget.Change(bucketOf(500), fleet.OutageLast, s.now())
	s.run(100 * ms)
	budget.Take(s.now(), 1)
	s.run(20 * ms)
	assert.True(t, budget.Take(s.now(), 1))
	assert.InDelta(t, 500, budget.Status(s.now()).Limit, 0)
}

func TestLargeCallIsGrantedAsAWhole(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		s := newStepped(t)
		budget := s.member.Budget(bucketOf(1000), mode, fleet.OutageLast, s.now())
		assert.False(t, budget.Take(s.now(), 300))
		waited := time.Duration(0)
		for ; waited < time.Second && !budget.Retake(s.now(), 300); waited += 10 * ms {
			s.run(10 * ms)
		}
		assert.Less(t, waited, 400*ms, "%s: 300 tokens flow in in 200 ms beyond the burst of 100", mode)
		assert.Equal(t, fleet.Never, budget.RetryAfter(s.now(), 2000))
	}
}

func TestFloodAfterLightLoadGainsNoMoreThanABoundedDebt(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	budget := s.member.Budget(bucketOf(100), fleet.ModeLease, fleet.OutageLast, s.now())
	for range 100 { // a fifth of the limit
		budget.Take(s.now(), 1)
		s.run(50 * ms)
	}
	passed := 0
	for range 100 {
		for range 1000 {
			if budget.Take(s.now(), 1) {
				passed++
			}
		}
		s.run(ms)
	}
	assert.LessOrEqual(t, passed, 10+10+20+2, "the burst, 100 ms, what was leased for at most 200 ms, and a token of debt")
}

func TestNotifyTellsThatTokensHaveArrived(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	arrived := 0
	budget.Notify(func() {
		arrived++
		budget.Status(s.now()) // no lock is held
	})
	assert.True(t, budget.Take(s.now(), 1), "on debt")
	assert.False(t, budget.Take(s.now(), 1))
	s.run(20 * ms)
	assert.Positive(t, arrived)
	assert.True(t, budget.Retake(s.now(), 1))
	assert.Positive(t, budget.Rate())
}

func TestDeniedBudgetTellsWhenToRetry(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	terms := fleet.Terms{Key: "flow/a", Limit: 5, Window: 10 * time.Second, Burst: 5, Buckets: 1}
	budget := s.member.Budget(terms, fleet.ModeWindow, fleet.OutageLast, s.now())
	passed := 0
	for range 100 {
		if budget.Take(s.now(), 1) {
			passed++
		}
		s.run(10 * ms)
	}
	assert.Equal(t, 5, passed)
	assert.InDelta(t, 9, budget.RetryAfter(s.now(), 1).Seconds(), 0.2)
	sent := len(s.sent)
	for range 500 {
		budget.Take(s.now(), 1)
		s.run(10 * ms)
	}
	assert.Len(t, s.sent, sent, "a denial holds until the store's retry time")
	s.run(4100 * ms)
	assert.True(t, budget.Take(s.now(), 1))
}

// An answer that comes after the timeout, but before the lease ends, is used; one that comes
// later is handed back.
func TestLateAnswerLosesNoTokens(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{120 * ms, 2 * time.Second} {
		s := newStepped(t)
		budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageClosed, s.now())
		s.run(10 * ms)
		budget.Take(s.now(), 1)
		for range 20 {
			budget.Take(s.now(), 1)
		}
		s.clock.Advance(10 * ms)
		batches := s.member.Step(s.now())
		assert.Len(t, batches, 1)
		assert.NoError(t, batches[0].Send(context.Background(), s.store))
		s.sent, s.got = append(s.sent, batches[0].Requests...), append(s.got, batches[0].Replies...)
		s.run(late)
		s.member.Deliver(s.now(), batches[0])
		if late < 200*ms {
			assert.True(t, budget.Take(s.now(), 1))
			budget.GiveBack(s.now(), 1)
		}
		s.assertBalanced(budget, 1, fleet.ModeLease)
	}
}

func TestStatusTellsWhatIsLeasedAndAsked(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	budget := s.member.Budget(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, s.now())
	for range 1000 {
		budget.Take(s.now(), 1)
		s.run(5 * ms)
	}
	status := s.member.Status(s.now())
	assert.Equal(t, "one", status.Instance)
	assert.True(t, status.Connected)
	assert.NoError(t, status.Err)
	assert.Equal(t, 1, status.Instances)
	assert.Positive(t, status.Requests)
	if assert.Len(t, status.Limits, 1) {
		limit := status.Limits[0]
		assert.Equal(t, fleet.ModeLease, limit.Mode)
		assert.InDelta(t, 200, limit.Demand, 30)
		assert.InDelta(t, 200, limit.Passed, 20)
		assert.InDelta(t, 200, limit.Granted, 40)
		assert.False(t, limit.Outage)
	}
}
