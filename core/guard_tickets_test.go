package core_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// ticketing is a limiter that gives the next of its tickets to each call, and notes
// which ones it gets back.
type ticketing struct {
	toy
	tickets             []rule.Ticket
	asked               int
	settled, done, back []rule.Ticket
	failed              []bool
}

func (l *ticketing) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.asked++
	return l.tickets[l.asked-1], rule.Pass
}

func (l *ticketing) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) { l.back = append(l.back, t) }

func (l *ticketing) Settle(_, _ clock.Instant, t rule.Ticket, _ int32) {
	l.settled = append(l.settled, t)
}

func (l *ticketing) Done(t rule.Ticket, e rule.Exit) {
	l.done, l.failed = append(l.done, t), append(l.failed, e.Failed)
}

// anyTicket draws tickets of all sizes. Most are 0, like those of isolation rules, or
// small, like those of breakers.
func anyTicket() *rapid.Generator[rule.Ticket] {
	return rapid.Custom(func(t *rapid.T) rule.Ticket {
		most := rapid.SampledFrom([]uint64{0, 0, 0, 0, 9, 1<<25 + 9, math.MaxUint64}).Draw(t, "most")
		return rule.Ticket(rapid.Uint64Range(most-min(most, 20), most).Draw(t, "ticket"))
	})
}

func TestEveryRuleGetsItsOwnTicketBack(t *testing.T) {
	const calls = 4
	e, _ := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		var limiters []*ticketing
		var rules []core.Imposed
		for i := range rapid.IntRange(1, 10).Draw(t, "rules") {
			l := &ticketing{tickets: rapid.SliceOfN(anyTicket(), calls+1, calls+1).Draw(t, "tickets")}
			limiters = append(limiters, l)
			rules = append(rules, imposed(rule.PhaseAccess, rule.Overloaded, toyConfig{
				Name: fmt.Sprintf("%02d", i), Shadow: rapid.IntRange(0, 9).Draw(t, "kind") == 0,
			}, l))
		}
		e.Impose("r", rules...)
		var guards [calls]core.Guard
		for i := range guards { // all are under way at once
			var err error
			guards[i], err = e.Entry(t.Context(), "r")
			require.NoError(t, err)
		}
		var want []rule.Ticket
		var failed []bool
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		for at, i := range order {
			guards[i].Settle(3)
			if failed = append(failed, at%2 == 0); failed[at] {
				guards[i].Fail(errors.New("broken"))
			}
			guards[i].Exit()
			guards[i].Exit()
			guards[i].Settle(4)
		}
		for _, l := range limiters {
			want = want[:0]
			for _, i := range order {
				want = append(want, l.tickets[i])
			}
			assert.Equal(t, want, l.settled)
			assert.Equal(t, want, l.done)
			assert.Equal(t, failed, l.failed)
			assert.Empty(t, l.back)
		}
	})
}

func TestRefusalGivesEveryRuleItsOwnTicketBack(t *testing.T) {
	e, _ := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		var limiters []*ticketing
		var rules []core.Imposed
		for i := range rapid.IntRange(1, 10).Draw(t, "rules") {
			l := &ticketing{tickets: []rule.Ticket{anyTicket().Draw(t, "ticket")}}
			limiters = append(limiters, l)
			rules = append(rules, toyRule(fmt.Sprintf("%02d", i), l))
		}
		e.Impose("r", append(rules, toyRule("last", &toy{decide: always(rule.Block)}))...)
		_, err := e.Entry(t.Context(), "r")
		require.ErrorIs(t, err, core.ErrBlocked)
		for _, l := range limiters {
			assert.Equal(t, l.tickets, l.back)
			assert.Empty(t, l.done)
		}
	})
}
