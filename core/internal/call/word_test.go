package call

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Whatever a guard carries comes out as it went in: the tickets, the tokens, and where the call is recorded.
func TestGuardsCarryWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const start = clock.Instant(1_800_000_000_000_000_000)
		count := rapid.IntRange(1, InlineSlots+2).Draw(t, "rules")
		p := &PassedRules{Rules: make([]PassedRule, count), asked: int32(count)}
		tickets := make([]rule.Ticket, count)
		for i := range tickets {
			p.Rules[i].forecasts = rapid.Bool().Draw(t, "forecasts")
			tickets[i] = drawTicket(t)
			if tickets[i] == 0 && p.Rules[i].forecasts {
				tickets[i] = rule.Ticket(start) // they have an instant always
			}
		}
		tokens := rapid.SampledFrom([]int32{1, 2, 255, 256, 1 << 30}).Draw(t, "tokens")
		word, rest, ok := p.Carry(tickets, start, tokens)
		if !ok {
			return
		}
		at := rapid.SampledFrom([]uint32{0, 1, maxRemembered, maxRemembered + 1}).Draw(t, "recorded at")
		rest = Remember(at, word, rest)
		for i, ticket := range tickets {
			assert.Equal(t, ticket, p.TicketIn(word, rest, i, start), "of rule %d", i)
		}
		assert.Equal(t, tokens, TokensIn(word, rest))
		if known := RecordedAt(word, rest); known != 0 {
			assert.Equal(t, at, known)
		}
	})
}

func drawTicket(t *rapid.T) rule.Ticket {
	return rapid.OneOf(
		rapid.SampledFrom([]rule.Ticket{0, 1, 63, 1 << 19, 1<<20 - 1, 1 << 20, 1<<25 - 1, 1 << 25, 1<<48 - 1, 1 << 48, 1 << 62}),
		rapid.Map(rapid.Uint64Range(0, 1<<20), func(n uint64) rule.Ticket { return rule.Ticket(n) }),
	).Draw(t, "ticket")
}

// The tickets of a breaker and an isolation rule are small numbers other than 0: a guard carries both, beside a window,
// whose ticket is the instant of the call.
func TestGuardCarriesTwoSmallTickets(t *testing.T) {
	t.Parallel()
	const start = clock.Instant(1_800_000_000_000_000_000)
	p := &PassedRules{Rules: []PassedRule{{}, {}, {forecasts: true}, {}}, asked: 4}
	_, _, ok := p.Carry([]rule.Ticket{1, 63, rule.Ticket(start), 0}, start, 200)
	assert.True(t, ok)
	_, _, ok = p.Carry([]rule.Ticket{1, 63, rule.Ticket(start), 1}, start, 200)
	assert.False(t, ok, "three of them have a record")
	_, _, ok = p.Carry([]rule.Ticket{1, 1 << 20, rule.Ticket(start), 0}, start, 200)
	assert.False(t, ok, "the second one is too large")
	_, _, ok = p.Carry([]rule.Ticket{1, 63, rule.Ticket(start), 0}, start, 256)
	assert.False(t, ok, "there is no space for so many tokens beside two tickets")
}
