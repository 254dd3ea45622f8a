package table

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// refreshBoth brings the blocks of a value's groups up to date. It returns now, or a later
// instant that one of them has seen.
func (b *Buckets) refreshBoth(k key, now clock.Instant) clock.Instant {
	for {
		seen := b.refresh(k.second, b.refresh(k.first, now))
		if seen == now {
			return now
		}
		now = seen
	}
}

// refresh brings the block of a group up to date, and returns now, or a later instant that
// it has seen: a call that comes late is taken to come then.
func (b *Buckets) refresh(group uint64, now clock.Instant) clock.Instant {
	now = max(0, now)
	block := group / blockGroups
	state := b.state.Load()
	if b.headers[block].Load() == state.header(&state.rates.classes[0], now) {
		return now
	}
	lock := &b.blocks[block%blockLocks]
	lock.Lock()
	defer lock.Unlock()
	return b.refreshLocked(block, now)
}

func (b *Buckets) refreshLocked(block uint64, now clock.Instant) clock.Instant {
	state := b.state.Load() // the present one: a block never goes back
	header := b.headers[block].Load()
	old, isOlder := state.rates, header&(1<<serialBits-1) != state.serial&(1<<serialBits-1)
	if isOlder {
		old = state.before
	}
	from := &old.classes[0].scale
	seen := clock.Instant(header >> serialBits << from.epoch)
	now = max(now, seen)
	wanted := state.header(&state.rates.classes[0], now)
	if wanted == header {
		return now
	}
	if header != 0 { // else no word has ever been in it
		c := conversion{state: state, old: old, isOlder: isOlder, seen: seen, now: now}
		for group := block * blockGroups; group < min((block+1)*blockGroups, uint64(len(b.groups))); group++ {
			for i := range b.groups[group] {
				b.convert(&c, group*groupSize+uint64(i))
			}
		}
	}
	b.headers[block].Store(wanted)
	return now
}

// conversion brings the words of a block up to date that was last so at an earlier instant,
// and may be of an older version.
type conversion struct {
	state     *bucketState
	old       *Rates
	isOlder   bool // the words are of a state before, though perhaps of the same rates
	seen, now clock.Instant
}

// convert drops the word of a slot that another value may have, and converts one of an
// older version.
func (b *Buckets) convert(c *conversion, slot uint64) {
	at := b.word(slot)
	for {
		word := at.Load()
		if word == 0 || at.CompareAndSwap(word, c.converted(word, b.hasReturned(slot))) {
			return
		}
	}
}

// converted returns a word of this version.
func (c *conversion) converted(word uint64, hasReturned bool) uint64 {
	from := c.old.classOf(word)
	if !c.isOlder {
		if c.ahead(from, word, c.now) <= -from.graceIf(hasReturned) {
			return 0
		}
		return word
	}
	// What was used until the change flows back at the new rate from then on.
	to, changed := c.state.rates.classLike(from), max(c.state.since, c.seen)
	ahead := c.ahead(from, word, changed)
	switch {
	case ahead <= -from.graceIf(hasReturned) || to.around() <= c.now.Sub(changed):
		return 0
	case ahead > 0:
		ahead = to.from(from, ahead)
	default:
		ahead = -to.toUnits.timesUp(from.toTime.timesUp(-ahead))
	}
	start := to.units(changed)
	if ahead-int64(to.units(c.now)-start) <= -to.graceIf(hasReturned) {
		return 0
	}
	return c.state.parity | word&(tagMask<<stateBits) | to.class | (start+uint64(ahead))&to.timeMask
}

// ahead returns how far the instant of a word is ahead of another one. It is negative if
// the instant has come before.
func (c *conversion) ahead(r *Rate, word uint64, at clock.Instant) int64 {
	if r.around() <= at.Sub(c.seen) {
		return -r.furthest // all that was there has come long ago
	}
	start := r.units(c.seen)
	return r.behind(word, start) - int64(r.units(at)-start)
}

// around returns how long instants take to repeat in a word.
func (s *scale) around() time.Duration { return time.Duration(s.toTime.timesUp(1 << s.timeBits)) }

// classLike returns the class with the number of another one, or class 0.
func (r *Rates) classLike(other *Rate) *Rate {
	if class := other.class >> other.timeBits; class < uint64(len(r.classes)) {
		return &r.classes[class]
	}
	return &r.classes[0]
}
