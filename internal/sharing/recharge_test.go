package sharing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
)

// recharged is what came of a recharge.
type recharged struct {
	times int
	left  int64
	err   error
}

// recharge adds tokens to a balance, and makes the steps that are due.
func recharge(s *stepped, asker *ask.Asker, tokens int64) recharged {
	var r recharged
	asker.Recharge(s.now(), tokens, func(left int64, err error) {
		r.times++
		r.left, r.err = left, err
	})
	s.step()
	return r
}

// balanceTerms are those of a balance that has some tokens at first.
func balanceTerms(limit float64) fleet.Terms {
	return fleet.Terms{Key: "flow/prepaid", Limit: limit, Window: 24 * time.Hour}
}

// allowedOf asks for a token so many times, and counts how often it was granted.
func allowedOf(s *stepped, asker *ask.Asker, times int) (count int) {
	for range times {
		answers := askFor(s, asker, 1)
		s.step()
		if (*answers)[0].Allowed {
			count++
		}
	}
	return count
}

func TestBalanceIsOnlyRecharged(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(balanceTerms(3), fleet.AskBalance, fleet.OutageClosed)
	assert.Equal(t, 3, allowedOf(s, asker, 10))
	s.clock.Advance(48 * time.Hour)
	s.run(time.Second)
	assert.Zero(t, allowedOf(s, asker, 10), "nothing flows back")
	assert.Equal(t, recharged{1, 1000, nil}, recharge(s, asker, 1000))
	assert.Equal(t, 10, allowedOf(s, asker, 10), "what was denied before is asked again at once")
	assert.Equal(t, recharged{1, 990, nil}, recharge(s, asker, 0))
	assert.Equal(t, recharged{1, -10, nil}, recharge(s, asker, -1000), "a correction takes off what is there or not")
	assert.Zero(t, allowedOf(s, asker, 2))
}

func TestTokensThatAnotherInstanceAddsAreFoundWithinASecond(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(balanceTerms(0), fleet.AskBalance, fleet.OutageClosed)
	assert.Zero(t, allowedOf(s, asker, 5))
	assert.Len(t, s.sent, 1, "a denial holds for a while: the store is not asked for each call")
	other := sharing.NewMember(fleet.Config{Manual: true, Instance: "two"}, s.clock, nil, 2)
	added := &stepped{t: t, clock: s.clock, store: s.store, member: other}
	assert.Equal(t, recharged{1, 7, nil}, recharge(added, other.Asker(balanceTerms(0), fleet.AskBalance, fleet.OutageClosed), 7))
	s.run(1100 * time.Millisecond)
	assert.Equal(t, 7, allowedOf(s, asker, 10))
}

func TestSettlementsOfABalanceGoBelowZeroAndAreKept(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(balanceTerms(10), fleet.AskBalance, fleet.OutageClosed)
	assert.Equal(t, 1, allowedOf(s, asker, 1))
	asker.Settle(s.now(), 29)
	s.step()
	assert.Equal(t, recharged{1, -20, nil}, recharge(s, asker, 0))
	asker.Settle(s.now(), -5)
	s.step()
	assert.Equal(t, recharged{1, -15, nil}, recharge(s, asker, 0))
	assert.Equal(t, 5, func() int { recharge(s, asker, 20); return allowedOf(s, asker, 10) }())
}

func TestOutageOfABalance(t *testing.T) {
	t.Parallel()
	for onOutage, want := range map[fleet.OnOutage]int{fleet.OutageClosed: 0, fleet.OutageOpen: 20} {
		t.Run(string(onOutage), func(t *testing.T) {
			t.Parallel()
			s := newStepped(t)
			asker := s.member.Asker(balanceTerms(0), fleet.AskBalance, onOutage)
			recharge(s, asker, 5)
			s.isDown = true
			s.run(2 * time.Second)
			askFor(s, asker, 1)
			s.run(2 * time.Second)
			before := s.now()
			passed := 0
			for range 20 {
				answers := askFor(s, asker, 1)
				s.run(200 * time.Millisecond)
				if assert.Len(t, *answers, 1) && (*answers)[0].Allowed {
					passed++
				}
			}
			assert.Equal(t, want, passed, "since %v", before)
			r := recharge(s, asker, 100)
			assert.Equal(t, 1, r.times)
			assert.ErrorIs(t, r.err, fleet.ErrUnavailable)
			s.isDown = false
			s.run(10 * time.Second)
			left := recharge(s, asker, 0)
			assert.NoError(t, left.err)
			if onOutage == fleet.OutageOpen {
				assert.LessOrEqual(t, left.left, int64(5-want), "what passed is taken when the store is back, also below 0")
			} else {
				assert.EqualValues(t, 5, left.left)
			}
		})
	}
}

func TestBalanceHasNoMoreTokensThanAStoreCounts(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	asker := s.member.Asker(balanceTerms(1), fleet.AskBalance, fleet.OutageClosed)
	assert.EqualValues(t, fleet.MaxTokens, recharge(s, asker, fleet.MaxTokens-1).left)
	assert.Error(t, recharge(s, asker, 1).err)
	assert.EqualValues(t, fleet.MaxTokens, recharge(s, asker, 0).left)
	assert.Error(t, recharge(s, asker, 2*fleet.MaxTokens).err)
}

func TestOnlyBalancesAreRecharged(t *testing.T) {
	t.Parallel()
	s := newStepped(t)
	r := recharge(s, s.member.Asker(askTerms(5), fleet.AskFixedWindow, fleet.OutageLast), 1)
	assert.ErrorIs(t, r.err, fleet.ErrUnsupported)
}
