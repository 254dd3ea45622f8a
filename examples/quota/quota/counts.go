package quota

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// day is how long a quota lasts.
const day = 24 * time.Hour

// dayNumber counts days since the Unix epoch.
type dayNumber int64

func dayOf(now clock.Instant) dayNumber { return dayNumber(now / clock.Instant(day)) }

func (d dayNumber) end() clock.Instant { return clock.Instant(d+1) * clock.Instant(day) }

const (
	// maxValues is how many values can be told apart in a day. The last place is for all
	// values beyond: they share one quota, so that memory is bounded and no limit is loose.
	maxValues = 1 << 14
	rest      = maxValues

	// nearby is in how many places in a row a value can have its count.
	nearby = 16
)

// counts is how much each value has used today. All versions of a rule have one.
type counts struct {
	mu      sync.Mutex
	seed    maphash.Seed
	version uint64 // the newest that a call has asked
	today   dayNumber
	values  int // places with tokens
	used    [maxValues + 1]place
}

// place is the count of the value with that hash; the hash is 0 if none has had it today.
type place struct {
	hash   uint64
	tokens int64
}

// begin returns the first instant of today.
func (c *counts) begin() clock.Instant { return clock.Instant(c.today) * clock.Instant(day) }

// isPast says whether today is over at an instant.
func (c *counts) isPast(now clock.Instant) bool { return dayOf(now) > c.today }

// open makes the day of an instant today.
func (c *counts) open(now clock.Instant) {
	if !c.isPast(now) {
		return
	}
	c.today = dayOf(now)
	if c.values > 0 {
		c.values = 0
		clear(c.used[:])
	}
}

// find returns the place of a value: its own, or one that it can have, or that of the rest.
func (c *counts) find(value rule.Attribute) int {
	hash := c.hash(value)
	free := rest
	for i := range nearby {
		at := int((hash + uint64(i)) % maxValues)
		switch p := &c.used[at]; {
		case p.hash == hash:
			return at
		case free == rest && c.isFree(p):
			free = at
		}
	}
	return free
}

// isFree says whether another value can have a place: one that nobody has had today, or one that was
// given back, but not while values are among the rest that found none then.
func (c *counts) isFree(p *place) bool {
	return p.hash == 0 || p.tokens == 0 && c.used[rest].tokens == 0
}

// take counts tokens at a place.
func (c *counts) take(at int, value rule.Attribute, tokens int64) {
	p := &c.used[at]
	if p.tokens == 0 {
		p.hash = c.hash(value)
		c.values++
	}
	p.tokens += tokens
}

// ticket says at which place tokens were counted today; it is not 0.
func (c *counts) ticket(at int) rule.Ticket { return rule.Ticket(c.today)<<32 | rule.Ticket(at+1) }

// giveBack takes back what was counted under a ticket.
func (c *counts) giveBack(t rule.Ticket, tokens int64) {
	if dayNumber(t>>32) != c.today {
		return
	}
	at := &c.used[uint32(t)-1]
	if at.tokens -= tokens; at.tokens == 0 {
		c.values--
	}
}

// hash returns the hash of a value, which is not 0. Its seed is random: nobody can choose values
// that have places near each other.
func (c *counts) hash(value rule.Attribute) uint64 {
	if text, ok := value.Text(); ok {
		return maphash.String(c.seed, text) | 1<<63
	}
	number, _ := value.Number()
	isTrue, isBoolean := value.Boolean()
	return maphash.Comparable(c.seed, scalar{number, isTrue, isBoolean}) | 1<<63
}

// scalar is a value that is not a text.
type scalar struct {
	number            int64
	isTrue, isBoolean bool
}
