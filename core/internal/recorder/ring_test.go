package recorder

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

// newRing returns a ring of the least size, and what writes a record to it a nanosecond later.
func newRing() (r *ring, later func() clock.Instant) {
	r, c := new(ring), clock.NewVirtual(time.Unix(1e9, 0))
	r.init(1, c)
	return r, func() clock.Instant {
		c.Advance(1)
		r.write(r.claim(c.Now(), 1), 0, 0, c.Now())
		return c.Now()
	}
}

func (r *ring) instants() (all []clock.Instant) {
	r.each(func(base clock.Instant, words []uint64) {
		for len(words) > 0 {
			all = append(all, base.Add(time.Duration(words[0]>>instantShift)))
			words = words[2*(words[0]>>lengthShift&lengthMask):]
		}
	})
	return all
}

// A call was interrupted between claiming its words and writing them, until its block was used again: its
// words are no part of that use, and the ring has nothing for certain from before it noticed.
func TestRingNoticesWordsOfAnEarlierUse(t *testing.T) {
	for name, write := range map[string]func(r *ring, at claimedPairs, now clock.Instant){
		"a record": func(r *ring, at claimedPairs, now clock.Instant) { r.write(at, recordEnded, 1, now) },
		"a long record": func(r *ring, at claimedPairs, now clock.Instant) {
			r.writeMore(at, recordSettled, 1, make([]uint64, 4), now)
		},
		"an end": func(r *ring, at claimedPairs, _ clock.Instant) {
			storeWord(&r.words[2*at.index+1], 1<<20|at.tag)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, later := newRing()
			first := r.clock.Now()
			late := r.claim(first, 3)
			r.fill(&r.blocks[late.index>>pairShift], 3<<claimShift|late.tag, 3) // for those who read meanwhile
			for !r.isUsedAgain(late) {
				later()
			}
			later()
			now := later()
			lost := r.lost.Load()
			require.Greater(t, lost, int64(first))
			whole := len(r.instants())
			require.Equal(t, lost, r.lost.Load(), "nothing is damaged")
			write(r, late, first)
			assert.Less(t, len(r.instants()), whole)
			assert.Greater(t, r.lost.Load(), lost)
			for _, at := range r.instants() {
				assert.GreaterOrEqual(t, at, first)
				assert.LessOrEqual(t, at, now)
			}
		})
	}
}

func (r *ring) isUsedAgain(at claimedPairs) bool {
	b := &r.blocks[at.index>>pairShift]
	state := b.state.Load()
	return tagOf(state) != at.tag && state>>claimShift > uint64(at.index&(pairsOfBlock-1)) && loadWord(&r.words[2*at.index]) != 0
}

// The end of a call does not touch the record that has taken the place of its own.
func TestRingDropsEndsOfCallsThatItHasNoMore(t *testing.T) {
	r, later := newRing()
	start := r.clock.Now()
	at := r.claim(start, 1)
	r.write(at, 0, 0, start)
	for !r.isUsedAgain(at) {
		later()
	}
	second := loadWord(&r.words[2*at.index+1])
	r.end(at.index, 0, start, 1<<20)
	assert.Equal(t, second, loadWord(&r.words[2*at.index+1]))
	r.end(uint32(len(r.words)), 0, start, 1<<20) // of a larger ring
}

// Records of all lengths end at the end of a block in all ways.
func TestRingHasRecordsOfAllLengths(t *testing.T) {
	r, _ := newRing()
	now := r.clock.Now()
	var want []clock.Instant
	for n := range 3 * pairsOfBlock / 4 {
		now++
		want = append(want, now)
		if pairs := uint64(n)%maxPairs + 1; pairs > 1 {
			r.writeMore(r.claim(now, pairs), 0, 0, make([]uint64, 2*pairs-2), now)
		} else {
			r.write(r.claim(now, 1), 0, 0, now)
		}
	}
	assert.ElementsMatch(t, want, r.instants())
}

// An instant that is earlier or later than those that a block can have is in another one.
func TestRingHasInstantsFarApart(t *testing.T) {
	r, _ := newRing()
	now := r.clock.Now()
	var want []clock.Instant
	for _, after := range []time.Duration{0, time.Hour, 0, -time.Hour, 1000 * time.Hour} {
		at := now.Add(after)
		want = append(want, at)
		r.write(r.claim(at, 1), 0, 0, at)
	}
	assert.ElementsMatch(t, want, r.instants())
}

// Goroutines write a ring many times over while another one reads it: what it says is there is there.
func TestRingIsWholeAfterTheInstantThatItNames(t *testing.T) {
	r := new(ring)
	r.init(1, clock.System())
	const goroutines, records = 8, 30_000
	var all sync.WaitGroup
	var last [goroutines]clock.Instant
	for g := range goroutines {
		all.Go(func() {
			for range records {
				now := r.clock.Now()
				r.write(r.claim(now, 1), uint64(g)<<resourceShift, 0, now)
				last[g] = now
			}
		})
	}
	for range 50 {
		r.instants()
	}
	all.Wait()
	have := map[clock.Instant]bool{}
	for _, at := range r.instants() {
		have[at] = true
	}
	for g, at := range last {
		assert.True(t, have[at] || at <= clock.Instant(r.lost.Load()), g)
	}
}
