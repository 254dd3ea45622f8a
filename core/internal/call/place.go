package call

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Place returns the fencing number of the first place of the fleet that a call has which passed at an
// instant; false if it has none.
func (p *PassedRules) Place(record *Record, word, rest uint32, start clock.Instant) (number uint64, ok bool) {
	for i, of := range p.Rules[:p.Asked()] {
		placed, isPlaced := of.Limiter.(optional.Placed)
		if !isPlaced {
			continue
		}
		ticket := rule.Ticket(0)
		if record == nil {
			ticket = p.TicketIn(word, rest, i, start)
		} else if slot := record.slot(i); slot.held {
			ticket = slot.ticket
		}
		if number, ok = placed.PlaceNumber(start, ticket); ok {
			return number, true
		}
	}
	return 0, false
}
