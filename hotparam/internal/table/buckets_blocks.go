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
	start := from.units(c.seen)
	since, passed := int64((word-start)&from.timeMask), c.now.Sub(c.seen)
	if from.toTime.timesUp(1<<from.timeBits) <= int64(passed) {
		return 0 // all that was there has come
	}
	ahead := since - int64(from.units(c.now)-start)
	switch {
	case ahead <= 0:
		return 0
	case c.old == c.state.rates:
		return word
	}
	class := int(from.class >> from.timeBits)
	if class >= len(c.state.rates.classes) {
		class = 0
	}
	to := &c.state.rates.classes[class]
	ahead = to.from(from, ahead)
	if ahead <= 0 {
		return 0
	}
	kept := word & (tagMask << stateBits)
	return c.state.parity | kept | to.class | (to.units(c.now)+uint64(ahead))&to.timeMask
}
