package call

import "github.com/penstock-go/penstock/rule"

// The states of a guard.
const (
	UnderWay  = iota
	Failed    // under way, and known to have failed
	Exited    // whoever says so first ends the call
	Ignored   // under way, and known to end neither well nor badly
	StateMask = 3

	// Where the tickets are of rules that learn of the end of the call, or of its cost; 0 if
	// there are no such rules. The guard itself can carry them if at most two are not 0. The
	// word then has the index of the first rule and its ticket, or the lower bits of one that is
	// wide, and the rest has the upper bits, or the index and the ticket of the second rule. If they
	// are in a record, the word has its generation.
	carried   = 1 << 2
	InRecord  = 2 << 2
	Wide      = 3 << 2
	WhereMask = 3 << 2

	GenerationShift = 4
	maxGeneration   = 1<<(32-GenerationShift) - 1

	indexShift  = 4
	indexMask   = InlineSlots - 1
	ticketShift = 7
	ticketBits  = 32 - ticketShift

	// The rest of a guard with a wide ticket or two tickets, and of one that remembers where it is recorded.
	tokenBits = 8
	tokenMask = 1<<tokenBits - 1
	wideBits  = ticketBits + 31 - tokenBits

	hasSecond         = 1 << 31 // else it has the upper bits of a wide ticket
	secondIndexShift  = tokenBits
	secondTicketShift = secondIndexShift + ticketShift - indexShift
	secondBits        = 31 - secondTicketShift

	remembers       = 1 << 31 // else the rest is the tokens, or has a wide ticket
	rememberedShift = tokenBits
	maxRemembered   = remembers>>rememberedShift - 1
)

// TokensIn returns what a call is charged with, of a guard that carries its tickets.
func TokensIn(word, rest uint32) int32 {
	if word&WhereMask == Wide || rest&remembers != 0 {
		return int32(rest & tokenMask)
	}
	return int32(rest)
}

// CarryOne is [PassedRules.Carry] for the ticket of the step with an index.
func CarryOne(index int, ticket rule.Ticket, tokens int32) (word, rest uint32, ok bool) {
	word = uint32(ticket)<<ticketShift | uint32(index)<<indexShift
	switch {
	case ticket>>ticketBits == 0:
		return word | carried, uint32(tokens), true
	case ticket>>wideBits == 0 && tokens <= tokenMask:
		return word | Wide, uint32(ticket>>ticketBits)<<tokenBits | uint32(tokens), true
	}
	return 0, 0, false
}

// carryTwo is [PassedRules.Carry] for the tickets of two steps, with their indices.
func carryTwo(first int, firstTicket rule.Ticket, second int, secondTicket rule.Ticket, tokens int32) (word, rest uint32, ok bool) {
	if second > indexMask || firstTicket>>ticketBits != 0 || secondTicket>>secondBits != 0 || tokens > tokenMask {
		return 0, 0, false
	}
	return uint32(firstTicket)<<ticketShift | uint32(first)<<indexShift | Wide,
		hasSecond | uint32(secondTicket)<<secondTicketShift | uint32(second)<<secondIndexShift | uint32(tokens), true
}

// ticketIn returns the ticket of the step with an index, of a guard that carries them.
func ticketIn(word, rest uint32, index int) rule.Ticket {
	isWide := word&WhereMask == Wide
	if word>>indexShift&indexMask != uint32(index) {
		if isWide && rest&hasSecond != 0 && rest>>secondIndexShift&indexMask == uint32(index) {
			return rule.Ticket(rest &^ hasSecond >> secondTicketShift)
		}
		return 0
	}
	ticket := rule.Ticket(word >> ticketShift)
	if isWide && rest&hasSecond == 0 {
		ticket |= rule.Ticket(rest>>tokenBits) << ticketBits
	}
	return ticket
}

// Remember returns the rest of a guard that notes where it is recorded that the call has passed, as its end
// is written beside it. 0 is nowhere: of many tokens or a wide ticket, and of the very first record, the end
// is a record of its own. Guards with a Record have it there.
func Remember(record, word, rest uint32) uint32 {
	if record == 0 || record > maxRemembered || rest > tokenMask || word&WhereMask > carried {
		return rest
	}
	return remembers | record<<rememberedShift | rest
}

// RecordedAt returns what Remember has noted in the rest of a guard with a word.
func RecordedAt(word, rest uint32) uint32 {
	if word&WhereMask <= carried && rest&remembers != 0 {
		return rest &^ remembers >> rememberedShift
	}
	return 0
}
