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
	added               []int32 // by settling
	failed              []bool
}

func (l *ticketing) Acquire(rule.Call) (rule.Ticket, rule.Decision) {
	l.asked++
	return l.tickets[l.asked-1], rule.Pass
}

func (l *ticketing) GiveBack(_ clock.Instant, t rule.Ticket, _ int32) { l.back = append(l.back, t) }

func (l *ticketing) Settle(_, _ clock.Instant, t rule.Ticket, tokens int32) {
	l.settled, l.added = append(l.settled, t), append(l.added, tokens)
}

func (l *ticketing) Done(t rule.Ticket, e rule.Exit) {
	l.done, l.failed = append(l.done, t), append(l.failed, e.Failed)
}

// anyTicket draws tickets of all sizes. Most are 0, like those of isolation rules, or
// small, like those of breakers.
func anyTicket() *rapid.Generator[rule.Ticket] {
	return rapid.Custom(func(t *rapid.T) rule.Ticket {
		most := rapid.SampledFrom([]uint64{0, 0, 0, 0, 9, 1<<25 + 9, 1<<40 + 9, 1<<49 + 9, math.MaxUint64}).Draw(t, "most")
		return rule.Ticket(rapid.Uint64Range(most-min(most, 20), most).Draw(t, "ticket"))
	})
}

// anyTokens draws tokens that a guard has space for beside its tickets, and more.
var anyTokens = rapid.SampledFrom([]int{1, 2, 200, 255, 256, 70_000, math.MaxInt32})

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
		var tokens [calls]int
		for i := range guards { // all are under way at once
			var err error
			tokens[i] = anyTokens.Draw(t, "tokens")
			guards[i], err = e.Entry(t.Context(), "r", core.Tokens(tokens[i]))
			require.NoError(t, err)
		}
		var want []rule.Ticket
		var added []int32
		var failed []bool
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		for at, i := range order {
			for range 2 {
				settled := anyTokens.Filter(func(n int) bool { return n != tokens[i] }).Draw(t, "settled")
				guards[i].Settle(settled)
				added = append(added, int32(settled-tokens[i]))
				tokens[i] = settled
			}
			if failed = append(failed, at%2 == 0); failed[at] {
				guards[i].Fail(errors.New("broken"))
			}
			guards[i].Exit()
			guards[i].Exit()
			guards[i].Settle(4)
		}
		for _, l := range limiters {
			var settled []rule.Ticket
			want = want[:0]
			for _, i := range order {
				want, settled = append(want, l.tickets[i]), append(settled, l.tickets[i], l.tickets[i])
			}
			assert.Equal(t, settled, l.settled)
			assert.Equal(t, added, l.added)
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
