package leap

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// Refusals counts the calls of a node that one rule blocks. All methods are safe for
// concurrent use.
type Refusals struct {
	node  *Node
	tally *tally         // where calls are counted
	index int            // of the tally in blockedBy
	also  *atomic.Uint64 // counts them, too, if there are more Refusals than tallies; else nil
}

// Refusals returns a new count, at zero, of calls that are blocked. The first four of a node
// count a call together with the node, in one atomic write, further ones in another one. The count is not
// to be copied once it is in use.
func (n *Node) Refusals() Refusals {
	n.mu.Lock()
	defer n.mu.Unlock()
	index := int(n.refusals)
	if n.refusals++; index >= len(n.blockedBy) {
		return Refusals{node: n, tally: &n.blocked, also: new(atomic.Uint64)}
	}
	own := &n.blockedBy[index]
	own.reopen(tagOf(n.second.Load()))
	return Refusals{node: n, tally: own, index: index}
}

// ownRefusals returns how many Refusals have a tally of their own. The caller holds n.mu.
func (n *Node) ownRefusals() int { return min(int(n.refusals), len(n.blockedBy)) }

// Block counts a call that the rule refused at now, with the tokens that it asked for, at least
// 0. The node counts it, too.
func (r *Refusals) Block(now clock.Instant, tokens int32) {
	if r.also != nil {
		r.also.Add(1)
	}
	r.node.count(r.tally, now, uint64(tokens))
}

// Total returns how many calls the rule has blocked.
func (r *Refusals) Total() uint64 {
	if r.also != nil {
		return r.also.Load()
	}
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	return r.node.movedRefused().total[r.index] + unpack(r.tally.word.Load()).events
}

// Minute returns how many calls the rule has blocked in each of the seconds of [Node.Minute]. Only the
// first four Refusals of a node know that: it is nil for the others.
func (r *Refusals) Minute(now clock.Instant) []uint64 {
	if r.also != nil {
		return nil
	}
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	last, open := secondOf(now), n.second.Load()
	minute := make([]uint64, KeptSeconds)
	for i := range minute {
		switch second := last - KeptSeconds + 1 + int64(i); {
		case second == open:
			minute[i] = n.openRefused()[r.index]
		case n.minute != nil && second < open && second > open-KeptSeconds:
			minute[i] = n.minute.sum(columnBlockedBy+r.index, second, second+1)
		}
	}
	return minute
}
