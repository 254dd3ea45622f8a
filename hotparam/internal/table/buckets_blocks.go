package table

import (
	"sync/atomic"

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
	old := state.rates
	if header&(1<<serialBits-1) != state.serial&(1<<serialBits-1) {
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
		c := conversion{state: state, old: old, seen: seen, now: now}
		for group := block * blockGroups; group < min((block+1)*blockGroups, uint64(len(b.groups))); group++ {
			for i := range b.groups[group] {
				c.convert(&b.groups[group][i])
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
	seen, now clock.Instant
}

// convert drops a word whose instant has come, and converts one of an older version.
func (c *conversion) convert(at *atomic.Uint64) {
	for {
		word := at.Load()
		if word == 0 || at.CompareAndSwap(word, c.converted(word)) {
			return
		}
	}
}

func (c *conversion) converted(word uint64) uint64 {
	from := c.old.classOf(word)
	if c.old == c.state.rates {
		if c.ahead(from, word, c.now) <= 0 {
			return 0
		}
		return word
	}
	// What was used until the change flows back at the new rate from then on.
	to, changed := c.state.rates.classLike(from), max(c.state.since, c.seen)
	ahead := to.from(from, c.ahead(from, word, changed))
	instant := to.units(changed) + uint64(ahead)
	if ahead <= 0 || to.toTime.timesUp(ahead) <= int64(c.now.Sub(changed)) {
		return 0
	}
	return c.state.parity | word&(tagMask<<stateBits) | to.class | instant&to.timeMask
}

// ahead returns how far the instant of a word is ahead of another one; 0 if it has come.
func (c *conversion) ahead(r *Rate, word uint64, at clock.Instant) int64 {
	passed := at.Sub(c.seen)
	if r.toTime.timesUp(1<<r.timeBits) <= int64(passed) {
		return 0 // all that was there has come
	}
	start := r.units(c.seen)
	return max(0, int64((word-start)&r.timeMask)-int64(r.units(at)-start))
}

// classLike returns the class with the number of another one, or class 0.
func (r *Rates) classLike(other *Rate) *Rate {
	if class := other.class >> other.timeBits; class < uint64(len(r.classes)) {
		return &r.classes[class]
	}
	return &r.classes[0]
}
